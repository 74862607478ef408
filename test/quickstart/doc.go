// Command quickstart starts the webhook and the proxy on this machine, shows what they refuse and allow, and checks each answer.
// It trusts nothing it shows: every step compares the answer with what it says, and one difference fails the run.
package main
