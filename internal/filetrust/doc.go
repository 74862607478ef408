// Package filetrust says whether a file can be changed only by accounts that may decide: SYSTEM, administrators and the account of this
// process on Windows, root and that account elsewhere. It trusts what the system says of owners, access lists and modes.
package filetrust
