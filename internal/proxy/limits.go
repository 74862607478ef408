package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"

	"github.com/pipeguard/pipeguard/internal/proxy/order"
)

// Limits bound the resources that callers can use. A zero field means its default.
type Limits struct {
	// Connections is the number of open connections to one pipe of callers that rules name. A node has some ten drivers with one or
	// two connections each; the bound keeps a caller that opens them in a loop from exhausting handles and memory. Callers that no
	// rule names have a sixteenth of it, besides.
	Connections int
	// ConnectionsPerCaller is how many of them one caller may hold: a container, or where none is proven an account with its
	// program, whatever processes it starts. A stock client opens two and uses one.
	ConnectionsPerCaller int
	// PrefaceTimeout is how long a connection may take to begin HTTP/2. A silent one costs a goroutine and a held process.
	PrefaceTimeout time.Duration
	// PeerTimeout is how long naming the caller may take.
	PeerTimeout time.Duration
	// StopTimeout is how long a stop waits for calls in flight before it cancels them, and then again for them to return.
	StopTimeout time.Duration
	// Operations is how many operations the host carries out at once, over all pipes. Most of them wait for a disk or
	// for another service.
	Operations int
	// Waiting is how many calls may wait for those, or for another call on the same object.
	Waiting int
	// OperationTimeout is how long an operation may take, whether or not its caller waits for it.
	OperationTimeout time.Duration
}

// Defaults of Limits.
const (
	defaultConnections          = 256
	defaultConnectionsPerCaller = 64
	defaultPrefaceTimeout       = 20 * time.Second // a busy node may take seconds to schedule a client
	defaultPeerTimeout          = 5 * time.Second
	defaultStopTimeout          = 20 * time.Second // within the 30 s that the kubelet and the service manager commonly give
	defaultOperations           = 64
	defaultWaiting              = 256
	defaultOperationTimeout     = 10 * time.Minute // a large directory takes minutes to remove; no driver waits longer
)

// Bounds that need no configuration.
const (
	// maxMessage is the largest request in bytes of a pipe of the node API. The largest that can be carried out is below 3 KiB: it
	// has two paths, of which those beyond 260 characters are refused. What is refused is recorded with its paths up to here.
	maxMessage = 16 << 10
	// window is how many bytes a caller may send ahead on a request and on a connection, the least that HTTP/2 has. It is not
	// adjusted to what a caller sends.
	window = 64<<10 - 1
	// readBuffer and writeBuffer are held for each connection. A request and its headers fit as a rule, and so does an answer.
	readBuffer  = 4 << 10
	writeBuffer = 4 << 10
	// wholeWithin is how long a request may take to arrive after its headers. Clients send both in one piece.
	wholeWithin = 5 * time.Second
	// strangersRequests is how many requests of strangers may be in progress, over all pipes. Each holds at most a window and its
	// headers, and all that waits for is the record of its denial and that its answer is read.
	strangersRequests = 64
	// strangersRecords is how many records of strangers' refusals are written at one time, over all pipes.
	strangersRecords = 64
	// takenWithin is how long answers may wait for a client to read. Nothing more is read from it meanwhile.
	takenWithin = 20 * time.Second
	// strangerTakes is how long they may wait for a stranger, strangerReads how many bytes are read of one before its answers are looked
	// after again, and answerTime how long an answer has to be on its way.
	strangerTakes = 2 * time.Second
	strangerReads = 1 << 10
	answerTime    = 20 * time.Millisecond
	// spareRequests is how many requests a caller may have in progress beyond what the queue of operations lets it have.
	spareRequests = 32
	// callersAtOnce is how many callers may have all the requests in progress that they may have. They are callers that rules name:
	// a bound for the memory of the process, and not for one of them.
	callersAtOnce = 4
	// forwardedRequests is how many calls of a caller, or of all strangers, may be in progress that are passed on unread, over all pipes,
	// and forwardedTotal how many of all callers that rules name. Each holds a few messages in either direction if they are not read, of
	// up to MaxForwardedMessage.
	forwardedRequests = 16
	forwardedTotal    = 2 * forwardedRequests
	// maxHeaders is the size of a request's headers. Clients send a few hundred bytes, and a token at most.
	maxHeaders = 16 << 10
	// maxStreams is the number of calls at once on one connection. Drivers serialise their calls by volume.
	maxStreams = 64
	// streamWorkers is the number of goroutines of one pipe that wait for calls with a stack that has grown already; a call
	// that finds all of them busy gets a new one. It saves a tenth of a call's time.
	streamWorkers = 4
	// pingInterval is the shortest time between a client's pings. Nothing is lost on a pipe without being noticed,
	// so pings are of no use here.
	pingInterval = time.Minute
	// mostUnnamed is how many connections to all pipes may wait for their callers to be named, of one client process up to a fifth.
	// They wait for PeerTimeout at most.
	mostUnnamed = 256
	// framesBurst is how many frames a connection may carry beside its requests, and framesPerSecond how many it may again in each
	// second. Each whole request allows framesPerRequest more: a client sends two for it, and few more of its own.
	framesBurst      = 512
	framesPerSecond  = 50
	framesPerRequest = 16
	// smallData is the size below which a frame of data counts on forwarded pipes, where calls are long.
	smallData = 1 << 10
	// drainTime is how long a stop waits for clients without a call in progress to take leave, and quietTime for an answer to be sent.
	drainTime = time.Second
	quietTime = 50 * time.Millisecond
	// strangerIdle is how long a stranger's connection may idle. Its calls are denied; it has no use for an open connection.
	strangerIdle = 30 * time.Second
	// strangersPerSecond is how many connections of strangers are served, over all pipes: at some 600 bytes for the record of each,
	// 20 MB an hour. One stranger has one a second, and strangersBurst after a pause: a client that looks at every pipe, or a driver
	// that is there before its rule, opens one or two to each of some 20 pipes at once.
	strangersPerSecond = 10
	strangersBurst     = 64
	// newPerSecond is how many connections of one caller that a rule names are served, over all pipes, and newBurst how many after a pause. A
	// driver that opens one for each call has a few a second; a caller that connects in a loop would take the processor from the others.
	newPerSecond = 50
	newBurst     = 512
	// awayFor is how long a caller that comes too often is turned away before one of its connections is named again, and maxAway how
	// many are.
	awayFor = time.Second
	maxAway = 1024
	// maxBacklog is the number of records that wait for a log that has failed, so that a flood of refusals fills no memory.
	// Beyond it only the ends of calls that were in flight are kept, of which there are at most maxStreams times Connections.
	maxBacklog = 4096
)

func (l Limits) withDefaults() (Limits, error) {
	err := errors.Join(
		complete("Connections", &l.Connections, defaultConnections),
		complete("ConnectionsPerCaller", &l.ConnectionsPerCaller, defaultConnectionsPerCaller),
		complete("PrefaceTimeout", &l.PrefaceTimeout, defaultPrefaceTimeout),
		complete("PeerTimeout", &l.PeerTimeout, defaultPeerTimeout),
		complete("StopTimeout", &l.StopTimeout, defaultStopTimeout),
		complete("Operations", &l.Operations, defaultOperations),
		complete("Waiting", &l.Waiting, defaultWaiting),
		complete("OperationTimeout", &l.OperationTimeout, defaultOperationTimeout),
	)
	return l, err
}

// complete gives a limit that is not set its default, and refuses a negative one.
func complete[T int | time.Duration](name string, limit *T, value T) error {
	if *limit < 0 {
		return fmt.Errorf("limit %s is %v", name, *limit)
	}
	*limit = cmp.Or(*limit, value)
	return nil
}

// queue returns the queue of operations. One caller has at most half of its places, and half of those that run; all callers of one group
// have three quarters.
func (l Limits) queue() *order.Queue {
	return order.New(order.Bounds{
		Running: l.Operations, Waiting: l.Waiting,
		PerOwner: l.perOwner(), RunningPerOwner: max(1, l.Operations/2),
		PerGroup: max(1, ofGroup(l.Operations+l.Waiting)), RunningPerGroup: max(1, ofGroup(l.Operations)),
	})
}

// ofGroup is the share of n that callers of one group may have together: see groupOf.
func ofGroup(n int) int { return n * 3 / 4 }

func (l Limits) perOwner() int { return max(1, (l.Operations+l.Waiting)/2) }

// strangers is how many connections to one pipe all callers have that no rule names.
func (l Limits) strangers() int { return max(1, l.Connections/16) }

// perGroup is how many connections to one pipe the callers of one namespace, or of one account of the host, may hold together: half
// of them, or what one caller may hold.
func (l Limits) perGroup() int { return max(l.Connections/2, l.ConnectionsPerCaller) }

// grpcOptions are the limits as options of gRPC.
func (l Limits) grpcOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		experimental.BufferPool(mem.NopBufferPool{}), // a pool's buffers are up to four times as large as what is in them
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(l.PrefaceTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingInterval}),
		grpc.WaitForHandlers(true), // a call that was cancelled still writes its terminal record
		grpc.NumStreamWorkers(streamWorkers),
	}
}
