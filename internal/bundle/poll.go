package bundle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// pollWait is how long the server may hold a request until there is another bundle, in seconds.
	pollWait = "60"
	// pollTimeout bounds a request with its wait.
	pollTimeout = 90 * time.Second
	// pollPause is the least time between two requests: a server that answers at once is not asked in a circle.
	pollPause = 5 * time.Second
	// wholeAgain is how often a node without a valid bundle asks for one that it has refused before.
	wholeAgain = time.Minute
)

// Poll offers what url has, at once and whenever it changes, until ctx is done. The client's TLS settings identify the
// server; an answer is trusted for its signature alone. The client must not follow redirects, which name another server.
func (k *Keeper) Poll(ctx context.Context, client *http.Client, url string) error {
	etag := ""
	var whole time.Time // when the bundle itself came last
	for {
		if k.Valid() != nil && time.Since(whole) > wholeAgain {
			etag = "" // what was refused may be taken by now: a key was pinned, or a clock was set
		}
		raw, tag, err := fetch(ctx, client, url, etag)
		switch {
		case ctx.Err() != nil: // Sleep ends at once
		case err != nil:
			k.o.Log.Warn("no bundle from the server", zap.Error(err))
		case raw != nil:
			whole = time.Now()
			_, err := k.Offer(ctx, raw)
			etag = tag
			if reason := ReasonOf(err); reason == ReasonNotYet || reason == ReasonStore {
				etag = "" // it may be taken later as it is
			}
		}
		if !periodic.Sleep(ctx, pollPause) {
			return nil
		}
	}
}

// fetch returns nil without an error if nothing has changed.
func fetch(ctx context.Context, c *http.Client, url, etag string) (raw []byte, tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
		r.Header.Set("Prefer", "modes=snapshot;wait="+pollWait)
	}
	// The archive is compressed already, and a second layer would unpack to more than was bounded.
	r.Header.Set("Accept-Encoding", "identity")
	answer, err := c.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	switch answer.StatusCode {
	case http.StatusNotModified:
		return nil, "", nil
	case http.StatusOK:
		raw, err := refuseSize(atmost.ReadAll(answer.Body, MaxCompressed))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", url, err)
		}
		return raw, answer.Header.Get("ETag"), nil
	}
	return nil, "", fmt.Errorf("%s answers %s", url, answer.Status)
}
