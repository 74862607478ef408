package handler

import (
	"context"
	"fmt"
	"io/fs"

	api "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

type smb struct {
	host  SMB
	roots *safepath.Roots
}

func (s smb) operations() map[string]operation {
	return map[string]operation{
		"NewSmbGlobalMapping":    called(s.add),
		"RemoveSmbGlobalMapping": on((*api.RemoveSmbGlobalMappingRequest).GetRemotePath, ParseRemotePath, s.remove),
	}
}

// add looks at all of a request before anything is done: a mapping is of use to every pod of the node, and must
// not be left behind by a request that is refused for its local path.
func (s smb) add(ctx context.Context, r *api.NewSmbGlobalMappingRequest, call *apiserver.Call) (*api.NewSmbGlobalMappingResponse, error) {
	remote, err := ParseRemotePath(r.GetRemotePath())
	if err != nil {
		return nil, err
	}
	m := SMBMapping{Remote: remote, Username: r.GetUsername(), By: call.Caller}
	if r.GetLocalPath() != "" {
		if m.Local, err = s.roots.CheckVolume(r.GetLocalPath()); err != nil {
			return nil, err
		}
	}
	if err := checkUsername("username", m.Username); err != nil {
		return nil, err
	}
	if m.Password, err = checkSecret("password", r.GetPassword(), maxCredential); err != nil {
		return nil, err
	}
	if m.Username == "" && !m.Password.IsEmpty() { // it would be left out, and the node's own rights be used
		return nil, invalid("username is empty, and there is a password")
	}
	if m.Username == "" && !call.Permits.NodeAccount {
		return nil, fmt.Errorf("username is empty: the node's own account would log on to %s. Send a user name, or permit NodeAccount in a rule with shares: %w",
			remote.Share(), fs.ErrPermission)
	}
	return &api.NewSmbGlobalMappingResponse{}, s.host.NewSMBGlobalMapping(ctx, m)
}

func (s smb) remove(ctx context.Context, remote RemotePath, _ *api.RemoveSmbGlobalMappingRequest) (*api.RemoveSmbGlobalMappingResponse, error) {
	return &api.RemoveSmbGlobalMappingResponse{}, s.host.RemoveSMBGlobalMapping(ctx, remote.Share())
}
