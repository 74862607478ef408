package peer

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// windowsProcess is an open handle of a process.
type windowsProcess windows.Handle

func (p windowsProcess) PID() (uint32, error) { return windows.GetProcessId(windows.Handle(p)) }

func (p windowsProcess) Close() error { return windows.CloseHandle(windows.Handle(p)) }

func (p windowsProcess) Started() (time.Time, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.Handle(p), &created, &exited, &kernel, &user); err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, created.Nanoseconds()), nil
}

// Alive asks without waiting: the handle is signalled once the process has ended.
func (p windowsProcess) Alive() error {
	event, err := windows.WaitForSingleObject(windows.Handle(p), 0)
	switch {
	case err != nil:
		return fmt.Errorf("ask whether it runs: %w", err)
	case event == uint32(windows.WAIT_TIMEOUT):
		return nil
	case event == windows.WAIT_OBJECT_0:
		return errEnded
	}
	return fmt.Errorf("ask whether it runs: unknown answer %#x", event)
}

// User is the account of the process's primary token. The name is for people, so a SID that
// has none here (a container's, for one) is no fault.
func (p windowsProcess) User() (user caller.User, err error) {
	var token windows.Token
	if err := windows.OpenProcessToken(windows.Handle(p), windows.TOKEN_QUERY, &token); err != nil {
		return caller.User{}, fmt.Errorf("open its token: %w", err)
	}
	defer func() { err = errors.Join(err, token.Close()) }()
	owner, err := token.GetTokenUser()
	if err != nil {
		return caller.User{}, fmt.Errorf("read its token: %w", err)
	}
	user.SID = owner.User.Sid.String()
	if account, domain, _, err := owner.User.Sid.LookupAccount(""); err == nil {
		user.Name = domain + `\` + account
	}
	return user, nil
}

// Image is the path with a drive letter. The image of a container can lie on a volume that has none on the
// host: then the path is the kernel's (\Device\…), which no rule about a drive can match by mistake.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-queryfullprocessimagenamew
func (p windowsProcess) Image() (string, error) {
	const win32Name, nativeName = 0, 1
	path, err := p.image(win32Name)
	if err == nil {
		return path, nil
	}
	native, nativeErr := p.image(nativeName)
	if nativeErr != nil {
		return "", errors.Join(err, nativeErr)
	}
	return native, nil
}

func (p windowsProcess) image(form uint32) (string, error) {
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name)) // #nosec G115 -- a constant
	if err := windows.QueryFullProcessImageName(windows.Handle(p), form, &name[0], &size); err != nil {
		return "", err
	}
	return windows.UTF16ToString(name[:size]), nil
}
