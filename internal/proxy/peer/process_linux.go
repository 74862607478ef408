package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// errReplaced means that the process runs another program by now (execve(2)).
var errReplaced = errors.New("the process runs another program than the one that connected")

// linuxProcess is an open pidfd. What it is asked comes from /proc by number; the number is its own
// for as long as it lives, so an answer counts only if the process was still alive after it.
type linuxProcess struct {
	fd  int
	pid uint32
	uid uint32 // effective user at the connect

	image      fs.FileInfo // the file that Image named, nil before that
	containers []string    // those that InJob found, nil before that
}

func (p *linuxProcess) Close() error { return unix.Close(p.fd) }

// PID is the process id of the pidfd: -1 once the process was waited for (pidfd_open(2)).
func (p *linuxProcess) PID() (uint32, error) {
	value, err := field(fmt.Sprintf("/proc/self/fdinfo/%d", p.fd), "Pid:")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: its id is %s", errEnded, value)
	}
	return uint32(pid), nil
}

// Alive asks without waiting. A process that runs another image than the one Image named has kept its number and
// its sockets, and nothing else that was proven. The pidfd is asked last, so that both answers are about one process.
func (p *linuxProcess) Alive() error {
	var image fs.FileInfo
	var err error
	if p.image != nil {
		image, err = os.Stat(p.exe())
	}
	switch alive := p.poll(); {
	case alive != nil:
		return alive
	case err != nil:
		return fmt.Errorf("ask for its image: %w", err)
	case p.image != nil && !os.SameFile(image, p.image):
		return errReplaced
	}
	return nil
}

// poll asks the pidfd, which becomes readable when its process ends.
func (p *linuxProcess) poll() error {
	for {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}} // #nosec G115 -- descriptors are small numbers
		ready, err := unix.Poll(fds, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("ask whether it runs: %w", err)
		case ready == 0:
			return nil
		case fds[0].Revents&unix.POLLIN != 0: // with POLLHUP beside it once it was waited for
			return errEnded
		}
		return fmt.Errorf("ask whether it runs: unknown answer %#x", fds[0].Revents)
	}
}

// Started is good to a second, never too late: the boot time is cut to seconds and the start to hundredths.
func (p *linuxProcess) Started() (time.Time, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return time.Time{}, err
	}
	ticks, err := startTicks(stat)
	if err != nil {
		return time.Time{}, err
	}
	value, err := field("/proc/stat", "btime")
	if err != nil {
		return time.Time{}, err
	}
	boot, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("boot time: %w", err)
	}
	return time.Unix(boot, 0).Add(time.Duration(ticks) * (time.Second / userHz)), nil // #nosec G115 -- an overflow needs a machine that is up for centuries
}

// userHz is the unit of /proc, the same on every Linux that Go runs on whatever the kernel ticks at.
const userHz = 100

// startTicks is field 22 of /proc/PID/stat (proc(5)). The second field is the command's name in parentheses,
// which the process chooses and may itself hold spaces and parentheses: the fields are counted from the last one.
func startTicks(stat []byte) (uint64, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, errors.New("status line without a command name")
	}
	fields := bytes.Fields(stat[end+1:])
	const start = 22 - 3 // fields holds the third and those after it
	if len(fields) <= start {
		return 0, errors.New("status line too short")
	}
	return strconv.ParseUint(string(fields[start]), 10, 63)
}

// User is the user that connected. A process that has changed its user since (a set-user-ID program) is an error.
func (p *linuxProcess) User() (caller.User, error) {
	line, err := field(fmt.Sprintf("/proc/%d/status", p.pid), "Uid:")
	if err != nil {
		return caller.User{}, err
	}
	ids := strings.Fields(line) // real, effective, saved, file system
	if len(ids) != 4 {
		return caller.User{}, fmt.Errorf("user ids %q", line)
	}
	if ids[1] != strconv.FormatUint(uint64(p.uid), 10) {
		return caller.User{}, fmt.Errorf("connected as user %d and is now user %s", p.uid, ids[1])
	}
	return caller.User{SID: "uid:" + ids[1]}, nil
}

// Image is the path by which this process, too, finds the file that runs. A file that was removed, or that another mount
// namespace puts at the path, is marked as the kernel marks such directories (getcwd(2)), and no rule matches the mark.
func (p *linuxProcess) Image() (string, error) {
	image, err := os.Stat(p.exe())
	if err != nil {
		return "", err
	}
	path, err := os.Readlink(p.exe())
	if err != nil {
		return "", err
	}
	p.image = image
	if !isAt(path, image) {
		return "(unreachable)" + path, nil
	}
	return path, nil
}

func isAt(path string, file fs.FileInfo) bool {
	found, err := os.Stat(path)
	return err == nil && os.SameFile(found, file)
}

func (p *linuxProcess) exe() string { return fmt.Sprintf("/proc/%d/exe", p.pid) }

// field is the rest of the line of a /proc file that begins with name.
func field(path, name string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q", path, name)
}
