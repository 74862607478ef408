package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Pattern is where a csi-proxy.exe is.
type Pattern struct {
	// Pipe is the name of its pipes without \\.\pipe\, with one "*" where GROUP-VERSION stands.
	Pipe string
	// Exe is as in Target.
	Exe string
	// Groups are the API groups that it serves; nil means all that this program knows.
	Groups []string
}

// Upstream carries out calls of the node API by asking a csi-proxy.exe.
type Upstream struct {
	checks  *handler.Handlers // over nothing
	groups  []string
	apis    []*apiserver.API
	methods map[string]apiserver.Method // by full method
	links   map[apiserver.GroupVersion]*Link
}

// NewUpstream opens nothing yet. Paths in requests must lie in roots, as if they were acted on here.
func NewUpstream(p Pattern, roots *safepath.Roots, o Options) (*Upstream, error) {
	before, after, ok := strings.Cut(p.Pipe, "*")
	if !ok || strings.Contains(after, "*") {
		return nil, fmt.Errorf("upstream pipe %q: want a name with one * in it", p.Pipe)
	}
	checks, err := handler.New(handler.Hosts{Disk: nothing{}, Filesystem: nothing{}, Volume: nothing{}, SMB: nothing{}, ISCSI: nothing{}, System: nothing{}}, roots)
	if err != nil {
		return nil, err
	}
	if p.Groups == nil {
		p.Groups = checks.Groups()
	}
	apis, err := apiserver.Load(p.Groups...)
	if err != nil {
		return nil, fmt.Errorf("upstream groups: %w", err)
	}
	u := &Upstream{checks: checks, groups: p.Groups, apis: apis, methods: map[string]apiserver.Method{}, links: map[apiserver.GroupVersion]*Link{}}
	for _, api := range apis {
		gv := api.GroupVersion()
		for _, m := range api.Methods() {
			u.methods[m.FullMethod] = m
		}
		if u.links[gv], err = NewLink(Target{Pipe: before + gv.String() + after, Exe: p.Exe}, o); err != nil {
			return nil, errors.Join(err, u.Close())
		}
	}
	return u, nil
}

// Groups returns the API groups that are passed on.
func (u *Upstream) Groups() []string { return slices.Clone(u.groups) }

// Handle checks a call as if it were carried out here, has the upstream carry it out by the method by which it was
// served, and returns the served response. It has the form of an apiserver.Handler. What is sent is what was decoded
// and judged, and nothing else; a status of the upstream comes back as it is, and why it could not be asked as an
// [apiserver.OwnError].
func (u *Upstream) Handle(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
	method, ok := u.methods[call.FullMethod]
	link := u.links[apiserver.GroupVersion{Group: call.Operation.Group, Version: call.Version}]
	if !ok || link == nil || call.Served == nil {
		return nil, apiserver.NewOwnError(codes.Unimplemented, call.FullMethod+" is not passed on")
	}
	// A disk that is looked up by name is not found on a host that has none; the upstream has to look too.
	if _, err := u.checks.Handle(ctx, call); err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	response := method.NewResponse()
	var asked peer.Peer
	err := link.client.Invoke(ctx, call.FullMethod, known(call.Served), response, grpc.MaxCallRecvMsgSize(maxAnswer), grpc.Peer(&asked))
	switch {
	case err == nil:
		return response, nil
	case asked == peer.Peer{}: // no server was reached, so the error is this program's own
		st := status.Convert(err)
		return nil, apiserver.NewOwnError(st.Code(), st.Message())
	}
	return nil, err
}

// maxAnswer is the largest answer in bytes of a method that is known. The longest are lists: of 64 KiB, some thousand disks or volumes.
const maxAnswer = 64 << 10

// Pass passes on a call of a method that this program does not know. A method that it does know, on whatever pipe, is
// refused: to pass it on unread would be a way round everything that is decided about it.
func (u *Upstream) Pass(ctx context.Context, gv apiserver.GroupVersion, fullMethod string, stream grpc.ServerStream) error {
	link := u.links[gv]
	if _, ok := u.methods[fullMethod]; ok || link == nil {
		return status.Errorf(codes.Unimplemented, "%s is not served on this pipe", fullMethod)
	}
	return link.Serve(ctx, fullMethod, stream)
}

// Ready returns nil if of every group at least one version is answered for: an upstream need not be as new as this program.
func (u *Upstream) Ready(ctx context.Context) error {
	var errs []error
	for _, group := range u.groups {
		errs = append(errs, u.groupReady(ctx, group))
	}
	return errors.Join(errs...)
}

func (u *Upstream) groupReady(ctx context.Context, group string) error {
	var last error
	for _, api := range slices.Backward(u.apis) { // newest first; it is what is asked for most
		if gv := api.GroupVersion(); gv.Group == group {
			if last = u.links[gv].Ready(ctx); last == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("upstream, group %s: %w", group, last)
}

// Close ends all connections and the calls that are on them.
func (u *Upstream) Close() error {
	var errs []error
	for _, link := range u.links {
		if link != nil {
			errs = append(errs, link.Close())
		}
	}
	return errors.Join(errs...)
}
