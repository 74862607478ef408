package evidence

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// ClientOptions name the witness and configure the requests to it.
type ClientOptions struct {
	// URL is the witness's submission prefix.
	URL string
	// Key is the witness's verifier key, type 04.
	Key string
	// HTTP sends the requests; it decides about TLS, proxies and redirects. Nil means one of httpsclient.New, which trusts the system's authorities.
	HTTP *http.Client
	// Interval is the least time between two questions; a witness stores each answer. 1 min if 0. The last checkpoint of a log that is closed is always sent.
	Interval time.Duration
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// OnCosigned is given each checkpoint with the witness's cosignature. It may be nil.
	OnCosigned func(cosigned []byte)
}

// Client asks a witness to cosign a log's checkpoints. It is a Sink.
type Client struct {
	o    ClientOptions
	keys Keys

	mu    sync.Mutex // guards the fields below; one question at a time
	old   uint64     // size that the witness cosigned last, as far as is known
	asked time.Time
}

var _ Sink = (*Client)(nil)

// ErrWitnessAhead means that the witness cosigned more records than the log has: the log was rolled back.
var ErrWitnessAhead = errors.New("the witness has seen more records than the log has")

// ErrWitnessRefuses means that the witness cosigned something that the log does not contain: the log was changed.
var ErrWitnessRefuses = errors.New("the witness has cosigned another log of this name")

// ErrWitnessClock means that the witness's clock and the log's differ by more than ClockTolerance. It says nothing about the log.
var ErrWitnessClock = errors.New("the clock of the witness differs from the log's")

// NewClient returns a client of one witness.
func NewClient(o ClientOptions) (*Client, error) {
	keys, err := witnessKey(o.Key)
	if !strings.HasPrefix(o.URL, "https://") && !strings.HasPrefix(o.URL, "http://") {
		err = errors.Join(err, fmt.Errorf("url %q: must begin with https:// or http://", o.URL))
	}
	if err != nil {
		return nil, fmt.Errorf("client of an audit witness: %w", err)
	}
	if o.HTTP == nil {
		if o.HTTP, err = httpsclient.New(httpsclient.Options{}); err != nil {
			return nil, err
		}
	}
	o.Interval = cmp.Or(o.Interval, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnCosigned == nil {
		o.OnCosigned = func([]byte) {}
	}
	return &Client{o: o, keys: keys}, nil
}

// CheckWitnessKey says whether a text is a key that NewClient takes: the verifier key of one witness.
func CheckWitnessKey(text string) error {
	_, err := witnessKey(text)
	return err
}

func witnessKey(text string) (Keys, error) {
	keys, err := ParseKeys(text)
	if err == nil && (len(keys.all) != 1 || keys.all[0].alg != algCosign) {
		err = errors.New("not one verifier key of type 04")
	}
	return keys, err
}

// Name is the witness's.
func (c *Client) Name() string { return c.keys.all[0].name }

// Send implements Sink: it asks for a cosignature unless it did so a moment ago.
func (c *Client) Send(ctx context.Context, copied Copy) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.o.Now(); !copied.IsLast && now.Sub(c.asked) < c.o.Interval {
		return nil
	}
	c.asked = c.o.Now()
	conflicts := 0
	for {
		err := c.ask(ctx, copied)
		var conflict conflictError
		if !errors.As(err, &conflict) {
			return err
		}
		switch {
		case conflict.size > copied.Size:
			return fmt.Errorf("%w: %d and %d", ErrWitnessAhead, conflict.size, copied.Size)
		case conflict.size == c.old && c.old == copied.Size:
			return fmt.Errorf("%w: another root of %d records", ErrWitnessRefuses, copied.Size)
		}
		if conflicts++; conflicts > 2 {
			return err
		}
		c.old = conflict.size
	}
}

// conflictError is the size that the witness wants a proof from.
type conflictError struct{ size uint64 }

func (e conflictError) Error() string {
	return fmt.Sprintf("the witness cosigned %d records last", e.size)
}

// maxAnswer bounds what is read of a witness's answer, in bytes.
const maxAnswer = 64 << 10

func (c *Client) ask(ctx context.Context, copied Copy) error {
	proof, err := copied.Prove(ctx, min(c.old, copied.Size))
	if err != nil {
		return err
	}
	body := request{min(c.old, copied.Size), proof, copied.Raw}.encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.o.URL, "/")+AddCheckpointPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	answer, err := httpsclient.Do(c.o.HTTP, r, maxAnswer)
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch answer.Code {
	case http.StatusOK:
		return c.take(copied, answer.Body)
	case http.StatusForbidden:
		if at, err := time.Parse(time.RFC3339, strings.TrimSuffix(string(answer.Body), "\n")); kind == clockType && err == nil {
			return fmt.Errorf("%w: it is %s for the witness, and %s here", ErrWitnessClock, at.UTC().Format(time.RFC3339), c.o.Now().UTC().Format(time.RFC3339))
		}
	case http.StatusConflict:
		size, err := strconv.ParseUint(strings.TrimSuffix(string(answer.Body), "\n"), 10, 64)
		if kind != sizeType || err != nil {
			return errors.New("the witness answers 409 without a size")
		}
		return conflictError{size}
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: it takes no proof from %d records to %d", ErrWitnessRefuses, c.old, copied.Size)
	}
	return fmt.Errorf("the witness answers %s", answer.Status)
}

// take keeps a valid cosignature, and no other line of the answer.
func (c *Client) take(copied Copy, lines []byte) error {
	whole := append(bytes.Clone(copied.Raw), lines...)
	seen, err := c.keys.open(whole)
	if err != nil {
		return fmt.Errorf("the witness's answer: %w", err)
	}
	if len(seen.Witnesses) == 0 || seen.Head != copied.Head {
		return errors.New("the witness's answer holds no cosignature by its key")
	}
	c.old = copied.Size
	copied.Cosigned()
	c.o.OnCosigned(whole)
	return nil
}
