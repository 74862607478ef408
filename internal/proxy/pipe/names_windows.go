package pipe

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// maxNames bounds how many names are read: a machine has some hundreds.
const maxNames = 65_536

// Names returns the names of all pipes that there are. A system that does not list them is asked for each of candidates. No
// pipe is opened.
func Names(_ Options, candidates []string) ([]string, error) {
	names, err := list()
	if err == nil {
		return names, nil
	}
	for _, name := range candidates {
		if found, askErr := exists(name); askErr != nil {
			return nil, errors.Join(err, askErr)
		} else if found {
			names = append(names, name)
		}
	}
	return names, nil
}

// list reads the root directory of the pipe file system.
// https://learn.microsoft.com/windows/win32/ipc/pipe-names
func list() (names []string, err error) {
	pattern, err := windows.UTF16PtrFromString(Address("*", Options{}))
	if err != nil {
		return nil, err
	}
	var found windows.Win32finddata
	search, err := windows.FindFirstFile(pattern, &found)
	if err != nil {
		return nil, fmt.Errorf("list pipes: %w", err)
	}
	defer func() { err = errors.Join(err, windows.FindClose(search)) }()
	for range maxNames {
		names = append(names, windows.UTF16ToString(found.FileName[:]))
		err := windows.FindNextFile(search, &found)
		if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list pipes: %w", err)
		}
	}
	return names, nil
}

var waitNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("WaitNamedPipeW")

// exists asks whether there is a pipe of that name, whether or not it has room for a client just now.
// https://learn.microsoft.com/windows/win32/api/namedpipeapi/nf-namedpipeapi-waitnamedpipew
func exists(name string) (bool, error) {
	address, err := windows.UTF16PtrFromString(Address(name, Options{}))
	if err != nil {
		return false, err
	}
	const noWait = 1 // NMPWAIT_NOWAIT, in milliseconds
	ok, _, err := waitNamedPipe.Call(uintptr(unsafe.Pointer(address)), noWait)
	switch {
	case ok != 0, errors.Is(err, windows.ERROR_SEM_TIMEOUT), errors.Is(err, windows.ERROR_PIPE_BUSY), errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return true, nil
	case errors.Is(err, windows.ERROR_FILE_NOT_FOUND), errors.Is(err, windows.ERROR_PATH_NOT_FOUND):
		return false, nil
	}
	return false, fmt.Errorf("ask for pipe %s: %w", name, err)
}
