#include <stdio.h>
#include <string.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define SHOW(x) printf(#x "=%d\n", x)
#define BUMP (hidden += 1)
#define swap(t, p, q) do { t tmp = p; p = q; q = tmp; } while (0)
typedef struct node { int value; struct node *next; } node;
enum color { RED = 3, BLUE };
static int counter = 1, table[4] = {1, 2, 3, 4};
static int sum(const int *values, int size);
static int apply(int (*f)(int x, int y), int x, int y) { return f(x, y); }
static int add(int a, int b) { int counter = a; { int counter = 5; b += counter; }
  return counter + b; }
static int sum(const int *values, int size) {
  int total = 0; for (int i = 0; i < size; i++) { int i2 = values[i]; total += i2; }
  return total; }
static int list(node *node) { int value = 0;
  while (node) { value = value * 10 + node->value;
    node = node->next; } return value; }
int shadow(int n) { int m = n, hidden = 1; BUMP; { int n = m + 1; m = n * sizeof(n); }
  if (m > 100) goto done; m += RED + hidden;
done: return (n) + MAX(n, m); }
int main(int argc, char **argv) {
  node last = {3, 0}, first = {.value = 2, .next = &last}; int shown = 4, p = 1, q = 2;
  char text[] = "text"; static int calls; swap(int, p, q);
  SHOW(shown); SHOW(p); counter += ++calls;
  printf("%d %d %d %d %s %zu %d\n", apply(add, 1, 2), sum(table, 4), list(&first),
    shadow(3), text, strlen(text), counter + (argc > 5)); return 0; }
