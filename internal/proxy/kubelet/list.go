package kubelet

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// maxList is in bytes; a pod is at most 1.5 MB in the API server, and some 10 kB in life.
const maxList = 32 << 20

// list asks once, over a connection of its own: that happens once for each new pod, and leaves nothing behind.
func (c *Client) list(ctx context.Context) (pods, error) {
	defer c.http.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := httpsclient.Do(c.http, request, maxList)
	if err != nil {
		return nil, err
	}
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", answer.Status)
	}
	return decodeList(answer.Body)
}
