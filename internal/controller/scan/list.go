package scan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// What an answer should hold.
const (
	acceptObjects  = "application/json"
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

const (
	// pageAttempts bounds how often a page is asked for: with doubling waits from half a second, a stumble of the API
	// server is over, and an outage is left to the next pass.
	pageAttempts = 5
	// restarts bounds how often a list begins again because the API server has forgotten where it was. It remembers
	// for minutes.
	restarts = 3
	// pageTimeout bounds one page; the API server itself gives up after one minute.
	pageTimeout = 2 * time.Minute
)

// errSuperseded means that other policies decide now than when the pass began.
var errSuperseded = errors.New("other policies decide by now")

// collector takes the objects of a list.
type collector interface {
	// restart is called before the first page, whenever that is read: what was collected before does not count.
	restart()
	// page is called before each attempt at a page: what was added since the last commit does not count.
	page()
	// add takes an object of the page. raw is valid until it returns.
	add(raw []byte) error
	// commit is called when the page has arrived whole.
	commit()
}

// listing says what to list, and in which form.
type listing struct {
	path     string
	accept   string
	selector string // of labels; "" selects everything
}

// lister lists objects in pages.
type lister struct {
	client     rest.Interface
	pageSize   int
	retryAfter time.Duration
	failed     func(path string, err error) // counts and logs
}

// list gives all objects of a listing to c, or returns an error. An object that is created or deleted meanwhile is in the
// list or not; all others are, once.
func (l *lister) list(ctx context.Context, of listing, c collector) error {
	for attempt := 0; ; attempt++ {
		c.restart()
		err := l.pages(ctx, of, c)
		switch {
		case err == nil:
			return nil
		case !isExpired(err) || attempt == restarts:
			return fmt.Errorf("list %s: %w", of.path, err)
		}
		l.failed(of.path, err)
	}
}

func (l *lister) pages(ctx context.Context, of listing, c collector) error {
	for next := ""; ; {
		var err error
		if next, err = l.page(ctx, of, next, c); err != nil {
			return err
		}
		c.commit()
		if next == "" {
			return nil
		}
	}
}

// page reads one page, with as many attempts as it may take.
func (l *lister) page(ctx context.Context, of listing, token string, c collector) (next string, err error) {
	wait := l.retryAfter
	for attempt := 1; ; attempt++ {
		c.page()
		next, err = l.get(ctx, of, token, c)
		switch {
		case err == nil:
			return next, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case attempt == pageAttempts || !isPassing(err):
			return "", err
		}
		l.failed(of.path, err)
		if !periodic.Sleep(ctx, wait) {
			return "", context.Cause(ctx)
		}
		wait *= 2
	}
}

func (l *lister) get(ctx context.Context, of listing, token string, c collector) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req := l.client.Get().AbsPath(of.path).SetHeader("Accept", of.accept).Param("limit", strconv.Itoa(l.pageSize))
	if of.selector != "" {
		req.Param("labelSelector", of.selector)
	}
	if token != "" {
		req.Param("continue", token)
	}
	body, err := req.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer body.Close()
	return readPage(body, c.add)
}

// isExpired reports whether the API server no longer knows the continue token. It answers 410 Gone.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// isPassing reports whether the same request may succeed later: not if other policies decide, if the page is of a list that
// has to begin again, or if the API server understood and refused.
func isPassing(err error) bool {
	if errors.Is(err, errSuperseded) || isExpired(err) {
		return false
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code := status.Status().Code
		return code >= 500 || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err)
	}
	return true
}
