// Command incident plays a fixed story on an invented node with the real guard, and leaves the audit log that a reviewer would be given.
// It trusts nobody whom the guard does not: the story fails if one answer is another than the one that it tells.
package main
