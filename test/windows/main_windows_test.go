package windows

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	fsclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	"google.golang.org/grpc/status"
)

// callTimeout bounds every call of these tests: one that hangs is a failure and not a hung run.
const callTimeout = 30 * time.Second

// TestMain lets this binary stand in for a CSI driver: with PIPEGUARD_CALL and PIPEGUARD_PATH set it makes that one
// call through the published client, prints the gRPC code of the answer, and leaves.
func TestMain(m *testing.M) {
	if method := os.Getenv("PIPEGUARD_CALL"); method != "" {
		if err := callOnce(method, os.Getenv("PIPEGUARD_PATH")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func callOnce(method, path string) error {
	client, err := fsclient.NewClient()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	switch method {
	case "Mkdir":
		_, err = client.Mkdir(ctx, &fsapi.MkdirRequest{Path: path})
	case "PathExists":
		_, err = client.PathExists(ctx, &fsapi.PathExistsRequest{Path: path})
	case "RmdirContents":
		_, err = client.RmdirContents(ctx, &fsapi.RmdirContentsRequest{Path: path})
	default:
		return fmt.Errorf("no method %q", method)
	}
	_, err = fmt.Println(status.Code(err))
	return err
}
