package winsvc

import "os"

// hangup is nil: Go sends SIGHUP for nothing on Windows.
var hangup os.Signal
