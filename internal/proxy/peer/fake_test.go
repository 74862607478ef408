package peer

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

var (
	accept   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errAsked = errors.New("the kernel does not say")
)

// fakeKernel tells of one caller. A test changes what it tells.
type fakeKernel struct {
	pids      []uint32 // one for every question, the last one for all after it
	pidErrs   []error  // likewise; nil where there is none
	openErr   error
	process   *fakeProcess
	questions int
}

func (k *fakeKernel) ClientPID(net.Conn) (uint32, error) {
	pid := k.pids[min(k.questions, len(k.pids)-1)]
	var err error
	if len(k.pidErrs) > 0 {
		err = k.pidErrs[min(k.questions, len(k.pidErrs)-1)]
	}
	k.questions++
	return pid, err
}

func (k *fakeKernel) Open(net.Conn, uint32) (process, error) {
	if k.openErr != nil {
		return nil, k.openErr
	}
	k.process.held++
	return k.process, nil
}

// Jobs are two for each container, as on Windows.
func (k *fakeKernel) Jobs(id string) []job {
	return []job{{name: `\Container_` + id}, {name: `JobContainer_` + id, isHostProcess: true}}
}

// fakeProcess is a process that tells what it is told to tell.
type fakeProcess struct {
	pid        uint32
	pidErr     error
	started    time.Time
	startedErr error
	alive      []error // one for every question, the last one for all after it
	user       caller.User
	userErr    error
	image      string
	imageErr   error
	closeErr   error
	jobs       []string         // that it belongs to
	jobErrs    map[string]error // by name of the job

	asked int
	held  int
}

func (p *fakeProcess) InJob(name string) (bool, error) {
	return slices.Contains(p.jobs, name), p.jobErrs[name]
}

func (p *fakeProcess) PID() (uint32, error)        { return p.pid, p.pidErr }
func (p *fakeProcess) Started() (time.Time, error) { return p.started, p.startedErr }
func (p *fakeProcess) User() (caller.User, error)  { return p.user, p.userErr }
func (p *fakeProcess) Image() (string, error)      { return p.image, p.imageErr }

func (p *fakeProcess) Alive() error {
	err := p.alive[min(p.asked, len(p.alive)-1)]
	p.asked++
	return err
}

func (p *fakeProcess) Close() error {
	p.held--
	return p.closeErr
}

// honest is a caller whom nothing speaks against.
func honest() *fakeKernel {
	return &fakeKernel{
		pids: []uint32{4711},
		process: &fakeProcess{
			pid:     4711,
			started: accept.Add(-time.Hour),
			alive:   []error{nil},
			user:    caller.User{SID: "S-1-5-18", Name: `NT AUTHORITY\SYSTEM`},
			image:   `C:\csi\driver.exe`,
		},
	}
}
