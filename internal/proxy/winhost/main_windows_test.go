package winhost

import (
	"os"
	"testing"

	"golang.org/x/sys/windows/svc"
)

// TestMain lets this binary be a service of the tests, which does nothing until it is told to stop.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "service" {
		if err := svc.Run(os.Args[2], sleeper{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type sleeper struct{}

func (sleeper) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	for r := range requests {
		switch r.Cmd {
		case svc.Interrogate:
			status <- r.CurrentStatus
		case svc.Stop:
			status <- svc.Status{State: svc.StopPending}
			return false, 0
		}
	}
	return false, 0
}
