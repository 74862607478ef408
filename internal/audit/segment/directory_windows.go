package segment

import "io/fs"

// appendFlag is none: a handle that may only append cannot allocate.
const appendFlag = 0

// checkOwner has nothing to add: making the directory private looks at its owner.
func checkOwner(fs.FileInfo) error { return nil }

// isAt is always so: Windows keeps a file that is open here from being moved or removed.
func isAt(string, fs.FileInfo) bool { return true }

// syncDir does nothing: Windows has no such call and needs none.
func syncDir(string) error { return nil }

// release does nothing: NTFS gives back what is behind the end when the last handle is closed.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_allocation_info
func release(string) error { return nil }
