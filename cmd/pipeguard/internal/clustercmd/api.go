package clustercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/atmost"
)

// requestTimeout bounds one request with its answer.
const requestTimeout = 30 * time.Second

// bounds are those of answers.
type bounds struct {
	bytes int64 // of one answer
	items int   // objects of one list
}

// usual are the bounds of a command. One object has at most 1.5 MiB where etcd has its defaults, and a page a few of them.
var usual = bounds{bytes: 64 << 20, items: 100_000}

// What an answer should hold.
const (
	acceptObjects  = "application/json"
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// api reads objects of a cluster.
type api struct {
	client    rest.Interface
	bounds    bounds
	server    string
	namespace string // of the command line or the context; "default" if neither names one
}

// boundedTransport ends each answer of more than most bytes with an error: client-go reads answers that are errors as a whole.
type boundedTransport struct {
	next http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, most: t.most, left: t.most}
	}
	return response, err
}

type boundedBody struct {
	io.ReadCloser
	most, left int64
}

// Read returns an *atmost.SizeError once more than the bound was read.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &atmost.SizeError{Most: b.most}
	}
	return n, err
}

// lacksRight reports whether the API server refused for want of a right.
func lacksRight(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// do sends a request and returns the body of the answer.
func do(ctx context.Context, r *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no answer within %s", requestTimeout))
	defer cancel()
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // which reads the Status in which the API server says why it refused
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return result.Raw()
}

// get reads one object. An object that is not there is an apierrors.IsNotFound.
func (a *api) get(ctx context.Context, path string, into any) error {
	raw, err := a.raw(ctx, path)
	if err != nil {
		return err
	}
	return decode(path, raw, into)
}

func (a *api) raw(ctx context.Context, path string) ([]byte, error) {
	raw, err := do(ctx, a.client.Get().AbsPath(path).SetHeader("Accept", acceptObjects))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return raw, nil
}

func decode(path string, raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("get %s: read the answer: %w", path, err)
	}
	return nil
}

// listing is a list that is read in pages.
type listing struct {
	path     string
	selector string // of labels; empty means all objects
	accept   string
	page     int // objects
}

// list gives each object to each, in pages.
func (a *api) list(ctx context.Context, l listing, each func(raw []byte) error) error {
	total := 0
	for token, pages := "", 0; ; pages++ {
		r := a.client.Get().AbsPath(l.path).SetHeader("Accept", l.accept).Param("limit", strconv.Itoa(l.page))
		if l.selector != "" {
			r.Param("labelSelector", l.selector)
		}
		if token != "" {
			r.Param("continue", token)
		}
		raw, err := do(ctx, r)
		var page struct {
			Metadata struct{ Continue string }
			Items    []json.RawMessage
		}
		if err == nil {
			err = json.Unmarshal(raw, &page)
		}
		if total += len(page.Items); err == nil && (total > a.bounds.items || pages*l.page > a.bounds.items) {
			err = fmt.Errorf("more than %d objects", a.bounds.items)
		}
		for i := 0; err == nil && i < len(page.Items); i++ {
			err = each(page.Items[i])
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", l.path, err)
		}
		if token = page.Metadata.Continue; token == "" {
			return nil
		}
	}
}

// tryCreate sends an object as a trial that creates nothing, and returns the API server's answer: nil if it would be created.
func (a *api) tryCreate(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	r := a.client.Post().AbsPath(path).Param("dryRun", "All").SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)
	_, err = do(ctx, r)
	return err
}

// message is what the API server says, or the text of another error.
func message(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Message != "" {
		return status.ErrStatus.Message
	}
	return err.Error()
}

// why is the first line of a message.
func why(err error) string {
	first, _, _ := strings.Cut(message(err), "\n")
	return first
}
