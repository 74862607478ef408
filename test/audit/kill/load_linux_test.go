package kill

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

// callers is how many call at once.
const callers = 16

// root is the working directory of the proxy; each call is about a path in it that no other call names.
const root = `C:\var\lib\kubelet\`

// load is calls until the proxy is gone.
type load struct {
	run     int
	stopped atomic.Bool
	first   chan struct{} // closed when a call was answered
	spent   chan struct{} // closed when more were refused than have records of their own
	once    sync.Once
	callers sync.WaitGroup

	mu       sync.Mutex // guards what follows
	refused  int
	answered map[string]string // path -> code
}

// begin starts all callers.
func begin(t *testing.T, p *place, run int) *load {
	t.Helper()
	l := &load{run: run, first: make(chan struct{}), spent: make(chan struct{}), answered: map[string]string{}}
	for i := range callers {
		l.callers.Go(func() { l.call(t, p.socket(), i) })
	}
	return l
}

func (l *load) call(t *testing.T, socket string, caller int) {
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := v1.NewFilesystemClient(conn)
	for i := 0; !l.stopped.Load(); i++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		path := fmt.Sprintf("%s%d-%d-%d", root, l.run, caller, i)
		switch i % 10 {
		case 7: // changes nothing
			_, err = client.PathExists(ctx, &v1.PathExistsRequest{Path: path})
		case 9: // is denied
			_, err = client.Rmdir(ctx, &v1.RmdirRequest{Path: path})
		default:
			_, err = client.Mkdir(ctx, &v1.MkdirRequest{Path: path})
		}
		cancel()
		code := status.Code(err)
		if code == codes.Unavailable {
			return // the proxy is gone
		}
		l.once.Do(func() { close(l.first) })
		l.mu.Lock()
		l.answered[path] = code.String()
		if code == codes.PermissionDenied {
			if l.refused++; l.refused == 2*budget {
				close(l.spent)
			}
		}
		l.mu.Unlock()
	}
}

// end waits for the callers, whose proxy is gone.
func (l *load) end() map[string]string {
	l.stopped.Store(true)
	l.callers.Wait()
	return l.answered
}
