// SPDX-License-Identifier: Apache-2.0
// Performs checked runs. Writes and compares buffers in pieces that fit in the L2 cache.
#include "verification.h"

#include "input_data.h"

#include <algorithm>
#include <cstring>

namespace hccl_perf {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} * 1024;

// Returns whether a guard follows the receive region. In place, the region of a reduce_scatter is
// a part of the send buffer and has no guard.
bool has_guard(const Cell& cell) {
  return cell.placement == Placement::out_of_place ||
         cell.call.collective->kind != CollectiveKind::reduce_scatter;
}

}  // namespace

Verification::Verification(Session& session, RankExchange& exchange, Board& board,
                           bool shared_by_all)
    : session_(session),
      exchange_(exchange),
      board_(board),
      shared_by_all_(shared_by_all),
      staging_(session, kPieceBytes),
      reference_(kPieceBytes) {}

void Verification::write_elements(std::uint64_t address, std::size_t size, std::uint64_t count,
                                  const Fill& fill) {
  const std::size_t most = kPieceBytes / size;
  for (std::uint64_t first = 0; first < count; first += most) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(most, count - first));
    fill(first, piece, staging_.data());
    session_.copy_to_device(staging_.data(), address + first * size, piece * size);
    session_.synchronize();
  }
}

void Verification::read_elements(std::uint64_t address, std::size_t size, std::uint64_t count,
                                 const Look& look) {
  const std::size_t most = kPieceBytes / size;
  for (std::uint64_t first = 0; first < count; first += most) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(most, count - first));
    session_.copy_to_host(address + first * size, staging_.data(), piece * size);
    session_.synchronize();
    look(first, piece, staging_.data());
  }
}

void Verification::write_input(const Cell& cell, std::uint64_t run) {
  write_elements(cell.call.send, cell.call.type.size, cell.counts.send,
                 [&](std::uint64_t first, std::size_t count, std::byte* elements) {
                   fill_input(cell.call.type, {session_.rank(), run}, first, count, elements);
                 });
}

void Verification::poison(std::uint64_t address, std::uint64_t bytes) {
  write_elements(address, 1, bytes, [](std::uint64_t, std::size_t count, std::byte* elements) {
    std::memset(elements, kPoison, count);
  });
}

void Verification::prepare(const Cell& cell, std::uint64_t run) {
  if (!cell.call.collective->moves_data()) return;
  const bool in_place = cell.placement == Placement::in_place;
  const CollectiveKind kind = cell.call.collective->kind;
  // The input of an in-place all-reduce covers its whole output, so only the guard is poisoned.
  const std::uint64_t covered =
      in_place && kind == CollectiveKind::all_reduce ? cell.receive_bytes() : 0;
  if (has_guard(cell))
    poison(cell.call.receive + covered, cell.receive_bytes() - covered + kGuardBytes);
  // In place, only the root's buffer contains the input of a broadcast. On the other ranks, the
  // broadcast must overwrite the poison.
  if (in_place && kind == CollectiveKind::broadcast && session_.rank() != cell.call.root) return;
  write_input(cell, run);
}

Agreement Verification::run_checked(const Cell& cell, std::uint64_t run) {
  if (!cell.call.collective->moves_data()) return {};
  const Expectation expected = expectation(cell, run);
  if (shares(cell)) compute_shared_part(cell, expected);
  session_.enqueue(cell.call);
  session_.synchronize();
  Agreement agreement = compare_outputs(cell, expected);
  if (has_guard(cell)) agreement.wrong += changed_guards(cell);
  if (cell.placement == Placement::out_of_place) agreement.wrong += changed_inputs(cell, run);
  return agreement;
}

Expectation Verification::expectation(const Cell& cell, std::uint64_t run) const {
  return {cell.call.collective,
          cell.call.type,
          cell.call.reduction,
          cell.call.root,
          cell.placement == Placement::in_place,
          session_.rank(),
          session_.ranks(),
          run,
          cell.counts};
}

// Returns whether the ranks divide the computation of the expected results among themselves. They
// do so for an all-reduce, whose result is the same on every rank and depends on all ranks' inputs,
// if they share a board that has space for the result.
bool Verification::shares(const Cell& cell) const {
  return shared_by_all_ && cell.call.collective->kind == CollectiveKind::all_reduce &&
         cell.receive_bytes() <= board_.expected_bytes();
}

// Computes this rank's part of the expected results. Blocks until the other ranks have written
// their parts.
void Verification::compute_shared_part(const Cell& cell, const Expectation& expected) {
  const auto rank = static_cast<std::uint64_t>(session_.rank());
  const auto ranks = static_cast<std::uint64_t>(session_.ranks());
  const std::uint64_t first = cell.counts.receive * rank / ranks;
  const std::uint64_t end = cell.counts.receive * (rank + 1) / ranks;
  fill_expected(expected, first, static_cast<std::size_t>(end - first),
                board_.expected() + first * cell.call.type.size);
  exchange_.barrier();
}

Agreement Verification::compare_outputs(const Cell& cell, const Expectation& expected) {
  const std::size_t size = cell.call.type.size;
  const bool shared = shares(cell);
  Agreement agreement;
  read_elements(cell.call.receive, size, cell.counts.receive,
                [&](std::uint64_t first, std::size_t count, const std::byte* elements) {
                  const std::byte* right = board_.expected() + first * size;
                  if (!shared) {
                    fill_expected(expected, first, count, reference_.data());
                    right = reference_.data();
                  }
                  agreement.add(compare_elements(expected, first, count, elements, right));
                });
  return agreement;
}

std::uint64_t Verification::changed_guards(const Cell& cell) {
  std::memset(reference_.data(), kPoison, kGuardBytes);
  const std::size_t size = cell.call.type.size;
  std::uint64_t changed = 0;
  read_elements(cell.call.receive + cell.receive_bytes(), size, kGuardBytes / size,
                [&](std::uint64_t, std::size_t count, const std::byte* elements) {
                  changed += count_differences(elements, reference_.data(), count, size);
                });
  return changed;
}

std::uint64_t Verification::changed_inputs(const Cell& cell, std::uint64_t run) {
  const std::size_t size = cell.call.type.size;
  std::uint64_t changed = 0;
  read_elements(
      cell.call.send, size, cell.counts.send,
      [&](std::uint64_t first, std::size_t count, const std::byte* elements) {
        fill_input(cell.call.type, {session_.rank(), run}, first, count, reference_.data());
        changed += count_differences(elements, reference_.data(), count, size);
      });
  return changed;
}

}  // namespace hccl_perf
