//go:build !windows

package integration

import (
	"context"
	"errors"
	"regexp"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

var activeRevision = regexp.MustCompile(`(?m)^pipeguard_policy_info\{revision="(sha256:[0-9a-f]{64})"\} 1$`)

// revision is what a replica decides by, as its metrics say.
func revision(ctx context.Context, r *cluster.Replica) (string, error) {
	text, err := r.Metrics(ctx)
	if err != nil {
		return "", err
	}
	found := activeRevision.FindStringSubmatch(text)
	if found == nil {
		return "", errors.New("the metrics name no revision")
	}
	return found[1], nil
}
