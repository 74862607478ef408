//go:build unix

package winsvc

import (
	"os"
	"syscall"
)

var hangup os.Signal = syscall.SIGHUP
