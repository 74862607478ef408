//go:build linux

package winhost

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// said begins what a provider says, in tests alone.
const said = "the provider says"

// repeating is an answer whose text has a secret in many forms, none of which anybody has to know.
func repeating(secret string) *wmi.Error {
	reversed := []byte(secret)
	slices.Reverse(reversed)
	text := fmt.Sprintf("%s %s, %s, %s, %x, %s, %s, %s", said, secret, strings.ToUpper(secret), strconv.Quote(secret), secret,
		base64.StdEncoding.EncodeToString([]byte(":"+secret)), hex.EncodeToString(reversed), strings.Join(strings.Split(secret, ""), "-"))
	return &wmi.Error{Op: "call", What: "Class.Method", Code: 0x80041001, Text: text}
}

func TestWhatAProviderSaysIsInNoErrorOrLogOfARequestWithASecret(t *testing.T) {
	core, logged := observer.New(zap.DebugLevel)
	mappings := map[string]func(*shares, *fakeWMI, *ground){
		"of the new mapping":             func(_ *shares, f *fakeWMI, _ *ground) { f.fails[created] = repeating(canary) },
		"of the mappings that are there": func(_ *shares, f *fakeWMI, _ *ground) { f.fails[smbMapping] = repeating(canary) },
		"of the mapping that is made anew": func(_ *shares, f *fakeWMI, _ *ground) {
			mapped(f, uint64(2), "0")
			f.fails[removed] = repeating(canary)
		},
		"of a mapping without a status": func(_ *shares, f *fakeWMI, _ *ground) { mapped(f, nil, "0"); f.fails[created] = repeating(canary) },
		"of the connections": func(_ *shares, f *fakeWMI, _ *ground) {
			mapped(f, uint64(0), "0")
			f.fails["MSFT_SmbConnection"] = repeating(canary)
		},
		"when room is made": func(s *shares, f *fakeWMI, _ *ground) {
			for n := range maxRemembered {
				s.known.of[handler.Share(fmt.Sprintf(`\\other\%d`, n))] = made{}
			}
			f.fails[smbMapping] = repeating(canary)
		},
		"when the mapping is undone": func(_ *shares, f *fakeWMI, g *ground) { // it knows the secret by then
			f.answers[created] = func() answer {
				g.write("C/work/link")
				f.classes[smbMapping] = []wmi.Instance{row("mapping", properties{})}
				f.set("mapping", "RemotePath", `\\server\share`)
				return answer{}
			}
			f.fails[removed] = repeating(canary)
		},
	}
	errs := map[string]error{}
	for name, spoil := range mappings {
		s, f, g := newShares(t)
		s.log = zap.New(core)
		spoil(&s, f, g)
		errs[name] = s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, `C:\work\link`, "user", canary))
	}
	for name, class := range map[string]string{
		"of portals": portalClass, "of targets": "portal>" + targetClass, "of the connection": targetClass + ".Connect",
	} {
		s, f := newTargets(t)
		f.fails[class] = repeating(iscsiCanary)
		errs[name] = s.ConnectTarget(t.Context(), portal, iqnOff, handler.Login{Auth: handler.AuthOneWayCHAP, Username: "u", Secret: handler.NewSecret(iscsiCanary)})
	}
	s, f := newTargets(t)
	f.fails[sessionClass+".SetCHAPSecret"] = repeating(iscsiCanary)
	errs["of the initiator"] = s.SetMutualCHAPSecret(t.Context(), handler.NewSecret(iscsiCanary))

	for name, err := range errs {
		switch {
		case err == nil:
			t.Errorf("%s: it was done", name)
		case strings.Contains(err.Error(), said), strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err.Error()), "c4n4ry"):
			t.Errorf("%s: %v", name, err)
		case name != "of the connections" && !strings.Contains(err.Error(), "0x80041001 (WBEM_E_FAILED)"):
			t.Errorf("%s: the number is lost: %v", name, err)
		}
	}
	if logged.Len() == 0 {
		t.Error("nothing was logged")
	}
	for _, entry := range logged.All() {
		if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, said) || strings.Contains(text, "c4n4ry") {
			t.Errorf("logged: %s", text)
		}
	}
}

func TestWhatAProviderSaysIsInErrorsOfRequestsWithoutASecret(t *testing.T) {
	s, f, g := newShares(t)
	f.fails[created] = repeating("nothing")
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "", "")), f.fails[created], said)
	mapped(f, uint64(0), "1")
	f.fails[removed] = repeating("nothing")
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), f.fails[removed], said)
	f.fails[smbMapping] = repeating("nothing")
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), f.fails[smbMapping], said)
}

// mount asks for the share by way of the handlers.
func (n node) mount(password string) error {
	_, err := n.call("smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Username: `EXAMPLE\user`, Password: password})
	return err
}

func TestErrorsOfRequestsWithASecretAreOursWordForWord(t *testing.T) {
	busy := func(n node) {
		if err := n.mount("first-password"); err != nil {
			t.Fatal(err)
		}
		connection(n.wmi, "1")
	}
	tests := []struct {
		name  string
		spoil func(n node)
		code  grpccodes.Code
		text  string
	}{
		{"a number of WMI", func(n node) { n.wmi.fails[created] = repeating("second-password") }, grpccodes.Internal,
			`WMI MSFT_SmbGlobalMapping.Create failed (target=\\server\share): code=2147749889: call Class.Method: 0x80041001 (WBEM_E_FAILED)`},
		{"a number of Windows, by way of WMI", func(n node) {
			n.wmi.fails[created] = &wmi.Error{Op: "call", What: "C.M", Code: 0x80070035, System: "The network path was not found.", Text: said + " second-password"}
		}, grpccodes.NotFound,
			`WMI MSFT_SmbGlobalMapping.Create failed (target=\\server\share): code=2147942453: call C.M: 0x80070035: The network path was not found.: the network path was not found`},
		{"a number of the method", func(n node) { n.wmi.says(created, 86) }, grpccodes.PermissionDenied,
			`WMI MSFT_SmbGlobalMapping.Create failed (target=\\server\share): code=86: the network password is not correct`},
		{"a remedy", busy, grpccodes.PermissionDenied,
			`\\server\share is mapped with other credentials and is in use. It is left as it is. Try again when no volume uses the share, or remove the mapping once its pods have left the node: permission denied`},
		{"a query", func(n node) { n.wmi.fails[smbMapping] = repeating("second-password") }, grpccodes.Internal,
			`failed to query the mapping of \\server\share. error: code=2147749889: call Class.Method: 0x80041001 (WBEM_E_FAILED)`},
	}
	for _, tt := range tests {
		n := newNode(t, fakeNetwork{})
		tt.spoil(n)
		err := n.mount("second-password")
		if st := status.Convert(err); st.Code() != tt.code || st.Message() != tt.text {
			t.Errorf("%s: %v\n%s", tt.name, st.Code(), st.Message())
		}
		if kind := fmt.Sprintf("%T", err); kind != "*apiserver.OwnError" {
			t.Errorf("%s: a %s", tt.name, kind)
		}
	}
}
