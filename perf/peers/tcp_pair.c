// SPDX-License-Identifier: Apache-2.0
// The cost of 8 bytes there and back for two programs that do nothing else, over one plain TCP
// connection: for the race over RoCE (roce.py).
//   RANK=0|1 tcp_pair poll|block ADDRESS PORT CALLS
// Rank 0 listens there, rank 1 connects; both poll the socket, or block in recv(2). Rank 0 prints
// the microseconds of a round trip: the median and the mean.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kMessage = 8, kTries = 500 };

static int fail(const char* what) {
  perror(what);
  exit(1);
}

static int meet(int rank, const char* address, int port) {
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  if (inet_pton(AF_INET, address, &where.sin_addr) != 1) fail(address);
  const int on = 1;
  const struct sockaddr* const name = (const struct sockaddr*)&where;
  for (int i = 0; rank == 1 && i < kTries; ++i, usleep(10000)) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, name, sizeof(where)) == 0) return connection;
    close(connection);
  }
  if (rank == 1) fail("connect");
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener, name, sizeof(where)) != 0 || listen(listener, 1) != 0) fail("listen");
  return accept(listener, NULL, NULL);
}

static void take(int connection, int flags) {
  char message[kMessage];
  for (size_t have = 0; have < kMessage;) {
    const ssize_t got = recv(connection, message + have, kMessage - have, flags);
    if (got == 0) exit(1);
    if (got > 0) have += (size_t)got;
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  const char* const number = getenv("RANK");
  if (argc != 5 || number == NULL) {
    fprintf(stderr, "usage: RANK=0|1 tcp_pair poll|block ADDRESS PORT CALLS\n");
    return 2;
  }
  const int rank = atoi(number);
  const int calls = atoi(argv[4]);
  const int flags = strcmp(argv[1], "poll") == 0 ? MSG_DONTWAIT : 0;
  const int on = 1;
  const int connection = meet(rank, argv[2], atoi(argv[3]));
  if (connection < 0 || calls < 1) return 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  double* const samples = calloc((size_t)calls, sizeof(double));
  const char message[kMessage] = {1};
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    const double begin = now();
    if (rank == 1) take(connection, flags);
    if (send(connection, message, kMessage, MSG_NOSIGNAL) != kMessage) fail("send");
    if (rank == 0) take(connection, flags);
    samples[i] = now() - begin;
    sum += samples[i];
  }
  qsort(samples, (size_t)calls, sizeof(double), compare);
  if (rank == 0) printf("%.3f %.3f\n", samples[calls / 2], sum / calls);
  free(samples);
  return 0;
}
