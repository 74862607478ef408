//go:build unix

package forward

import (
	"net"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

func listen(name string, o pipe.Options) (net.Listener, error) { return pipe.Listen(name, o) }
