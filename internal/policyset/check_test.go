package policyset

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

func TestWhatAPipePolicyCouldNeverPermitIsRefused(t *testing.T) {
	image := func(s string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Images = []string{s} }
	}
	method := func(s ...string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Node.Methods = s }
	}
	paths := func(s ...string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Node.PathPrefixes = s }
	}
	own := func(r v1alpha1.SubjectRules) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Node = r }
	}
	host := func(accounts ...string) func(*v1alpha1.PipePolicySpec) {
		return func(p *v1alpha1.PipePolicySpec) {
			p.Subjects[0].ServiceAccounts, p.Subjects[0].HostProcess = []string{"node"}, &v1alpha1.HostProcess{RunAsUserNames: accounts}
		}
	}
	path := func(s string) func(*v1alpha1.PipePolicySpec) { return paths(s) }
	process := func(account, program string, change ...func(*v1alpha1.PipePolicySpec)) v1alpha1.PipePolicy {
		return pipes("p", append([]func(*v1alpha1.PipePolicySpec){func(p *v1alpha1.PipePolicySpec) {
			p.Subjects = []v1alpha1.Subject{{Name: "agent", Process: &v1alpha1.NodeProcess{Account: account, Program: program}}}
		}}, change...)...)
	}
	const agent = `C:\Program Files\Agent\agent.exe`
	many := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(`C:\%d`, i))
		}
		return out
	}
	name := func(s string) v1alpha1.PipePolicy { return pipes(s) }
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for what, c := range map[string]struct {
		policy v1alpha1.PipePolicy
		fault  string // empty if there is none
	}{
		"a method":                   {pipes("p", method("ListDiskIDs")), ""},
		"an own method misspelt":     {pipes("p", own(v1alpha1.SubjectRules{Methods: []string{"FormatVolumes"}})), `spec.subjects[0].node.methods[0]: Invalid value: "FormatVolumes": not a method of the node API: did you mean "FormatVolume"?`},
		"an own path of a drive":     {pipes("p", own(v1alpha1.SubjectRules{PathPrefixes: []string{`C:\`}})), "spec.subjects[0].node.pathPrefixes[0]"},
		"a permit of nobody":         {pipes("p", own(v1alpha1.SubjectRules{Permits: []v1alpha1.Permit{"All"}})), "spec.subjects[0].node.permits[0]: Invalid value: permit \"All\""},
		"the node's account":         {pipes("p", own(v1alpha1.SubjectRules{Permits: []v1alpha1.Permit{"NodeAccount"}})), "NodeAccount needs shares"},
		"its account on a server":    {pipes("p", own(v1alpha1.SubjectRules{Permits: []v1alpha1.Permit{"NodeAccount"}, Shares: []string{`\\a\*`}})), ""},
		"a share of every server":    {pipes("p", own(v1alpha1.SubjectRules{Shares: []string{`\\*\x`}})), "spec.subjects[0].node.shares[0]"},
		"a share that does not show": {pipes("p", own(v1alpha1.SubjectRules{Shares: []string{"\\\\a\\b\u200b"}})), "U+200B does not show"},
		"a share twice":              {pipes("p", own(v1alpha1.SubjectRules{Shares: []string{`\\a\b`, `\\a\b`}})), "spec.subjects[0].node.shares[1]: Duplicate value"},
		"an account of Windows":      {pipes("p", host(`NT AUTHORITY\SYSTEM`)), ""},
		"any account of Windows":     {pipes("p", host()), ""},
		"no account of Windows":      {pipes("p", host([]string{}...)), "subjects[0].hostProcess.runAsUserNames: is empty"},
		"accounts of a domain":       {pipes("p", host(`NT AUTHORITY\*`)), "names are exact"},
		"an account out of sight":    {pipes("p", host("SYSTEM\u200b")), "U+200B does not show"},
		"hosts of any account":       {pipes("p", host(), func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].ServiceAccounts = nil }), "must name its service accounts"},
		"hosts alone":                {pipes("p", host(), func(p *v1alpha1.PipePolicySpec) { p.Pipes = nil }), ""},
		"neither pipes nor hosts":    {pipes("p", func(p *v1alpha1.PipePolicySpec) { p.Pipes = nil }), "guards nothing"},
		"a process as a host":        {process("S-1-5-18", agent, func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].HostProcess = &v1alpha1.HostProcess{} }), "leave namespace, serviceAccounts, containers, images, hostProcess and hostPaths out"},
		"no share":                   {pipes("p", own(v1alpha1.SubjectRules{Shares: []string{}})), "spec.subjects[0].node.shares: Invalid value: is empty"},
		"no own method":              {pipes("p", own(v1alpha1.SubjectRules{Methods: []string{}})), "spec.subjects[0].node.methods: Invalid value: is empty"},
		"every service":              {pipes("p", own(v1alpha1.SubjectRules{Services: []string{"*"}})), "spec.subjects[0].node.services[0]"},
		"65 services":                {pipes("p", own(v1alpha1.SubjectRules{Services: slices.Repeat([]string{"x"}, 65)})), "must have at most 64 items"},
		"a burst of no rate":         {pipes("p", own(v1alpha1.SubjectRules{Limits: v1alpha1.CallLimits{Burst: new(int32(1))}})), "spec.subjects[0].node.limits.burst"},
		"no connections":             {pipes("p", own(v1alpha1.SubjectRules{Limits: v1alpha1.CallLimits{Connections: new(int32(0))}})), "spec.subjects[0].node.limits.connections"},
		"no calls":                   {pipes("p", own(v1alpha1.SubjectRules{Limits: v1alpha1.CallLimits{CallsPerSecond: new(int32(0))}})), "spec.subjects[0].node.limits.callsPerSecond"},
		"no burst":                   {pipes("p", own(v1alpha1.SubjectRules{Limits: v1alpha1.CallLimits{CallsPerSecond: new(int32(1)), Burst: new(int32(0))}})), "spec.subjects[0].node.limits.burst"},
		"connections below zero":     {pipes("p", own(v1alpha1.SubjectRules{Limits: v1alpha1.CallLimits{Connections: new(int32(-1))}})), "spec.subjects[0].node.limits.connections"},
		"all that a subject can say": {pipes("p", own(v1alpha1.SubjectRules{Methods: []string{"Mkdir"}, PathPrefixes: []string{`C:\x`}, Services: []string{"x"}, Limits: v1alpha1.CallLimits{Connections: new(int32(1)), CallsPerSecond: new(int32(1)), Burst: new(int32(2))}})), ""},
		"a method in small letters":  {pipes("p", method("listdiskids")), `did you mean "ListDiskIDs"?`},
		"a method misspelt":          {pipes("p", method("FormatVolumes")), `did you mean "FormatVolume"?`},
		"a method of nobody":         {pipes("p", method("Teleport")), "not a method of the node API"},
		"any method":                 {pipes("p", method("*")), "leave the list out to permit all"},
		"a path":                     {pipes("p", path(`C:\var\lib\kubelet`)), ""},
		"a relative path":            {pipes("p", path(`var\lib\kubelet`)), "not an absolute Windows path"},
		"a path of no drive":         {pipes("p", path(`\var\lib`)), "at beginning of path"},
		"a path of a drive's place":  {pipes("p", path(`C:var`)), "not an absolute Windows path"},
		"a path upwards":             {pipes("p", path(`C:\var\..\x`)), "invalid characters"},
		"a path with a star":         {pipes("p", path(`C:\var\*`)), "no request can be below it"},
		"a short name":               {pipes("p", path(`C:\PROGRA~1`)), "looks like a short name"},
		"a dot at the end":           {pipes("p", path(`C:\var.`)), "ends in a dot or a space"},
		"a space at the end":         {pipes("p", path(`C:\var `)), "ends in a dot or a space"},
		"a device":                   {pipes("p", path(`C:\NUL`)), "is a device name"},
		"a stream":                   {pipes("p", path(`C:\var:x`)), "invalid characters"},
		"a drive":                    {pipes("p", path(`C:\`)), "is a whole drive"},
		"slashes":                    {pipes("p", path(`C:/var`)), "not an absolute Windows path"},
		"a path that no call has":    {pipes("p", path(`C:\`+strings.Repeat("x", 300))), "exceeds maximum characters"},
		"a path of 1,025 characters": {pipes("p", path(`C:\`+strings.Repeat("x", 1022))), "may not be more than 1024"},
		"a path twice":               {pipes("p", paths(`C:\var`, `C:\var`)), "spec.node.pathPrefixes[1]: Duplicate value"},
		"33 paths":                   {pipes("p", paths(many(33)...)), "must have at most 32 items"},
		"32 paths":                   {pipes("p", paths(many(32)...)), ""},
		"a method twice":             {pipes("p", method("ListDiskIDs", "ListDiskIDs")), "spec.node.methods[1]: Duplicate value"},
		"129 methods":                {pipes("p", method(slices.Repeat([]string{"ListDiskIDs"}, 129)...)), "must have at most 128 items"},
		"a registry with a dot":      {pipes("p", image("r.example./x:1")), "matches no image"},
		"a registry with a dash":     {pipes("p", image("-r.example/x:1")), "matches no image"},
		"a registry's port":          {pipes("p", image("r.example:x/y:1")), "matches no image"},
		"a tag of 129 characters":    {pipes("p", image("r.example/x:"+strings.Repeat("a", 129))), "matches no image"},
		"a tag of 128 characters":    {pipes("p", image("r.example/x:"+strings.Repeat("a", 128))), ""},
		"a tag with a dash":          {pipes("p", image("r.example/x:-1*")), "matches no image"},
		"a beginning of any tag":     {pipes("p", image("r.example/x:*")), ""},
		"an image":                   {pipes("p", image("registry.example:5000/team/driver:v1.2")), ""},
		"an image by digest":         {pipes("p", image("registry.example/driver"+digest)), ""},
		"a beginning of images":      {pipes("p", image("registry.example/driver:v1.*")), ""},
		"an image of a short digest": {pipes("p", image("registry.example/driver@sha256:0a")), "matches no image"},
		"a URL":                      {pipes("p", image("https://registry.example/driver")), "matches no image"},
		"an image with a space":      {pipes("p", image("registry.example/driver v1")), "matches no image"},
		"an image without its tag":   {pipes("p", image("registry.example/driver:")), "matches no image"},
		"a registry in capitals":     {pipes("p", image("Registry.Example/driver:V1")), ""},
		"an image in capitals":       {pipes("p", image("Registry/X:1")), "only its registry and its tag may have them"},
		"a repository in capitals":   {pipes("p", image("registry.example/Team/driver:v1")), "no runtime takes a name in capital letters"},
		"a beginning in capitals":    {pipes("p", image("registry.example/Dri*")), "no runtime takes a name in capital letters"},
		"a beginning of a tag":       {pipes("p", image("registry.example/driver:V*")), ""},
		"a beginning with a dash":    {pipes("p", image("registry.example/team/dri-*")), "must follow /, : or @"},
		"a registry's images":        {pipes("p", image("registry.example:5000/*")), ""},
		"a segment with a dash":      {pipes("p", image("registry.example/-team/driver")), "matches no image"},
		"a segment with two marks":   {pipes("p", image("registry.example/team/a._b")), "matches no image"},
		"an image upwards":           {pipes("p", image("registry.example/../driver")), "matches no image"},
		"a path with a zero width":   {pipes("p", path("C:\\var\\lib\\kube\u200blet")), "U+200B does not show"},
		"a path with a filler":       {pipes("p", path("C:\\var\\\u3164")), "U+3164 does not show"},
		"a path with a direction":    {pipes("p", path("C:\\var\\\u202egpj.exe")), "U+202E does not show"},
		"a path with a line break":   {pipes("p", path("C:\\var\n")), "U+000A does not show"},
		"a path of bytes":            {pipes("p", path("C:\\var\xff")), "is not UTF-8"},
		"a path in another script":   {pipes("p", path(`C:\данные\卷`)), ""},
		"a path with a space":        {pipes("p", path(`C:\Program Files\x`)), ""},
		"a process":                  {process("S-1-5-18", agent), ""},
		"a process's methods":        {process("S-1-5-18", agent, method("ListDiskIDs"), path(`C:\x`)), ""},
		"an empty process":           {process("", ""), "spec.subjects[0].process: Required value"},
		"a namespace beside nothing": {process("", "", func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Namespace = "a" }), "spec.subjects[0].process: Required value"},
		"a process of no account":    {process("", agent), `subjects[0]: account "" of a process: want a SID`},
		"a process by its user":      {process("SYSTEM", agent), `account "SYSTEM" of a process: want a SID`},
		"a process of no program":    {process("S-1-5-18", ""), `program "" of a process: want the full path of one program`},
		"a process of a directory":   {process("S-1-5-18", `C:\Program Files\Agent\*`), "a directory could hold anybody's"},
		"a process of containers":    {process("S-1-5-93-2-2", agent), "nothing but containers runs as it"},
		"a process that is hidden":   {process("S-1-5-18", "C:\\agent\u200b.exe"), "spec.subjects[0].process.program: Invalid value"},
		"a program of 1,025 letters": {process("S-1-5-18", `C:\`+strings.Repeat("x", 1022)), "subjects[0].process.program: 1025 characters"},
		"an account of 185 letters":  {process("S-1"+strings.Repeat("-123456789012", 14), agent), "subjects[0].process.account: 185 characters"},
		"a process of a namespace":   {process("S-1-5-18", agent, func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Namespace = "a" }), "a process of the node is in no pod"},
		"a process in containers":    {process("S-1-5-18", agent, func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Containers = []string{"a"} }), "a process of the node is in no pod"},
		"a process of no container":  {process("S-1-5-18", agent, func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].Containers = []string{} }), "a process of the node is in no pod"},
		"a process of an account":    {process("S-1-5-18", agent, func(p *v1alpha1.PipePolicySpec) { p.Subjects[0].ServiceAccounts = []string{"a"} }), "a process of the node is in no pod"},
		"a process of an image":      {process("S-1-5-18", agent, image("r.example/x:1")), "a process of the node is in no pod"},
		"a process's token":          {process("S-1-5-18", agent, own(v1alpha1.SubjectRules{RequireToken: true})), "no process of the node has a token"},
		"a token of all":             {process("S-1-5-18", agent, func(p *v1alpha1.PipePolicySpec) { p.Node.RequireToken = true }), "no process of the node has a token"},
		"neither kind of subject":    {pipes("p", func(p *v1alpha1.PipePolicySpec) { p.Subjects = []v1alpha1.Subject{{Name: "a"}} }), `subjects[0].namespace: "": want`},
		"a name":                     {name("disks.of-azure"), ""},
		"a name in capitals":         {name("Disks"), "metadata.name"},
		"a name with a slash":        {name("a/b"), "metadata.name"},
		"no name":                    {name(""), "metadata.name"},
	} {
		err := CheckPipePolicy(&c.policy).ToAggregate()
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", what, err, c.fault)
		}
	}
	m := module("Not_A_Name", "a.rego", goodRule, "a_test.rego", goodTest)
	if faults := CheckPolicyModule(&m); len(faults) != 1 || faults[0].Field != "metadata.name" {
		t.Errorf("the name of a PolicyModule: %v", faults)
	}
}

func TestAnExpiryThatHasPassedIsAWarning(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	p := pipes("p", func(s *v1alpha1.PipePolicySpec) {
		s.Subjects[0].Owner, s.Subjects[0].Reason = "o", "r"
		s.Subjects[0].ExpiresAt = &metav1.Time{Time: now}
	})
	if faults := CheckPipePolicy(&p); len(faults) > 0 {
		t.Error(faults)
	}
	if got := Warnings(&p, now); !slices.Equal(got, []string{"subject node expired: it permits nothing"}) {
		t.Error(got)
	}
	if got := Warnings(&p, now.Add(-30*24*time.Hour)); len(got) > 0 {
		t.Error(got)
	}
}

func TestAProcessIsNoSubjectOfAnyServiceAccount(t *testing.T) {
	p := pipes("p", func(s *v1alpha1.PipePolicySpec) {
		s.Subjects = []v1alpha1.Subject{{Name: "agent", Process: &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `C:\agent.exe`}}, {Name: "all", Namespace: "a"}}
	})
	if got := Warnings(&p, time.Time{}); !slices.Equal(got, []string{"subject all names no service account: any in namespace a may use the pipes"}) {
		t.Errorf("%q", got)
	}
}

func TestPipesAndMethodsThatCSIProxyDoesNotHaveAreWarnings(t *testing.T) {
	const (
		noFormat = "no pipe that it opens has the method FormatVolume: it is one of csi-proxy-volume-*"
		foreign  = "subject node has methods, paths, shares or services, and is permitted nothing on pipes that are not CSI Proxy's: their operations are not known"
	)
	for what, c := range map[string]struct {
		pipes, methods []string
		want           []string
	}{
		"a pipe":             {[]string{"csi-proxy-disk-v1"}, nil, nil},
		"a pipe in capitals": {[]string{"CSI-Proxy-SMB-v1beta2"}, nil, nil},
		"all pipes": {[]string{"csi-proxy*"}, []string{"FormatVolume"}, []string{
			"a pattern covers csi-proxy-iscsi-v1alpha1 and csi-proxy-iscsi-v1alpha2 without spelling out the group iscsi: they are guarded, and no node permits anything there; write csi-proxy-iscsi-*",
			"a pattern covers csi-proxy-system-v1alpha1 without spelling out the group system: they are guarded, and no node permits anything there; write csi-proxy-system-*",
		}},
		"all pipes, and a group spelled out": {[]string{"CSI-proxy-*", "csi-proxy-System-v1alpha1", "csi-proxy-iscsi-*"}, []string{"StartService"}, nil},
		"a version spelled out": {[]string{"csi-proxy*", "csi-proxy-system-*", "csi-proxy-iscsi-v1alpha2"}, nil, []string{
			"a pattern covers csi-proxy-iscsi-v1alpha1 without spelling out the group iscsi: they are guarded, and no node permits anything there; write csi-proxy-iscsi-*",
		}},
		"a method of a group that is implied": {[]string{"csi-proxy-s*"}, []string{"StartService"}, []string{
			"a pattern covers csi-proxy-system-v1alpha1 without spelling out the group system: they are guarded, and no node permits anything there; write csi-proxy-system-*",
			"no pipe that it opens has the method StartService: it is one of csi-proxy-system-*",
		}},
		"the pipes of a group":               {[]string{"csi-proxy-volume-*"}, []string{"FormatVolume"}, nil},
		"the beginning of a version":         {[]string{"csi-proxy-volume-v1b*"}, nil, nil},
		"a group misspelt":                   {[]string{"csi-proxy-disc-v1"}, nil, []string{`CSI Proxy has no pipe csi-proxy-disc-v1: did you mean "csi-proxy-disk-v1"?`}},
		"a group misspelt, and any version":  {[]string{"csi-proxy-volumes-*"}, nil, []string{`CSI Proxy has no pipe csi-proxy-volumes-*: did you mean "csi-proxy-volume-*"?`}},
		"a version that there is not":        {[]string{"csi-proxy-smb-v2"}, nil, []string{`CSI Proxy has no pipe csi-proxy-smb-v2: did you mean "csi-proxy-smb-v1"?`}},
		"a group of nobody":                  {[]string{"csi-proxy-printers-v1"}, nil, []string{`CSI Proxy has no pipe csi-proxy-printers-v1`}},
		"a pipe without its beginning":       {[]string{"disk-v1"}, nil, []string{`pipe disk-v1 is none of CSI Proxy: did you mean "csi-proxy-disk-v1"?`}},
		"the beginning of pipes without it":  {[]string{"Disk-*"}, nil, []string{`pipe Disk-* is none of CSI Proxy: did you mean "csi-proxy-disk-*"?`}},
		"a pipe of another program":          {[]string{"vendor-disks"}, []string{"FormatVolume"}, []string{noFormat, foreign}},
		"a method of another pipe":           {[]string{"csi-proxy-disk-v1", "csi-proxy-smb-*"}, []string{"ListDiskIDs", "FormatVolume"}, []string{"no pipe that it opens has the method FormatVolume: it is one of csi-proxy-volume-*"}},
		"a method, and a pipe of others too": {[]string{"csi-proxy-disk-v1", "vendor-*"}, []string{"FormatVolume"}, []string{noFormat, foreign}},
		"a method, and a pipe misspelt":      {[]string{"csi-proxy-volum-v1"}, []string{"FormatVolume"}, []string{`CSI Proxy has no pipe csi-proxy-volum-v1: did you mean "csi-proxy-volume-v1"?`, noFormat}},
	} {
		p := pipes("p", func(s *v1alpha1.PipePolicySpec) {
			s.Pipes = nil
			for _, pipe := range c.pipes {
				s.Pipes = append(s.Pipes, v1alpha1.PipePattern(pipe))
			}
			s.Node.Methods = c.methods
		})
		if faults := CheckPipePolicy(&p); len(faults) > 0 {
			t.Errorf("%s: %v", what, faults)
		}
		if got := Warnings(&p, time.Time{}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestFindingsOfAnotherPackageAreTakenWhereTheyAreRead(t *testing.T) {
	own := strings.Replace(goodRule, "package pipeguard.admission", "package pipeguard.extra", 1)
	const reader = "package pipeguard.admission\n\n# METADATA\n# title: Images come from the registry of the house\n# custom:\n#   code: HOUSE1\n#   severity: high\n" +
		"findings contains finding if some finding in data.pipeguard.extra.findings\n"
	own = strings.Replace(own, "# METADATA\n# title: Images come from the registry of the house\n# custom:\n#   code: HOUSE1\n#   severity: high\n", "", 1)
	m := module("m", "a.rego", own, "b.rego", reader, "a_test.rego", passingTest)
	if err := try(t, sources(t, m)); err != nil {
		t.Error(err)
	}
}

func TestMisspeltNamesInRegoAreRefused(t *testing.T) {
	for what, c := range map[string]struct{ from, to, want string }{
		"the package":                {"package pipeguard.admission", "package pipeguard.admision", "did you mean package pipeguard.admission?"},
		"the package's case":         {"package pipeguard.admission", "package pipeguard.Admission", "did you mean package pipeguard.admission?"},
		"the rule":                   {"findings contains", "finding contains", "did you mean findings?"},
		"the rule's case":            {"findings contains", "Findings contains", "did you mean findings?"},
		"a field of the input":       {"mount.guarded == true", "mount.guarded == true\n\tinput.namespce == 1", "did you mean input.namespace?"},
		"a field in the input":       {"mount.guarded == true", "input.kind.goup == 1\n\tmount.guarded", "did you mean input.kind.group?"},
		"a field of a variable":      {"mount.guarded == true", "mount.garded == true", "mount.garded is read here, and no input has it: did you mean mount.guarded?"},
		"a field that is denied":     {"mount.guarded == true", "not mount.garded", "did you mean mount.guarded?"},
		"a field given to a call":    {"startswith(mount.image,", "startswith(mount.imagee,", "did you mean mount.image?"},
		"a field by an index":        {"some mount in input.mounts", "mount := input.mounts[_]\n\tmount.garded", "did you mean mount.guarded?"},
		"a field of a list's name":   {"some mount in input.mounts", "list := input.mounts\n\tsome mount in list\n\tlist[_].garded", "did you mean list"},
		"a field in every":           {"mount.guarded == true", "mount.guarded\n\tevery c in input.containers { c.hostprocess }", "did you mean c.hostProcess?"},
		"a field in a set":           {"mount.guarded == true", "mount.guarded\n\tcount({c | some c in input.containers; c.privilegd}) == 0", "did you mean c.privileged?"},
		"a field behind two names":   {"mount.guarded == true", "mount.guarded\n\tp := input.persistentVolumes[_]\n\tc := p.claim\n\tc.nam", "did you mean c.name?"},
		"a field of anything":        {"mount.guarded == true", "mount.guarded\n\tsome t in [input.mounts[0], {\"x\": 1}]\n\tt.x == 1", ""},
		"a label of a variable":      {"mount.guarded == true", "mount.guarded\n\tp := input.pod\n\tp.labels.anything == 1", ""},
		"a field of two lists":       {"mount.guarded == true", "mount.guarded\n\tsome list in [input.mounts, input.unmounted]\n\tsome t in list\n\tt.image == 1", ""},
		"a package of the author":    {"package pipeguard.admission", "package pipeguard.extra", "data.pipeguard.extra.findings is read nowhere, and decides nothing: did you mean package pipeguard.admission?"},
		"a field of a list's entry":  {"mount.guarded == true", "input.mounts[_].guardd\n\tmount.guarded", "did you mean input.mounts"},
		"a label, which may be any":  {"mount.guarded == true", "mount.guarded\n\tinput.labels.anything == 1", ""},
		"a field of what was sent":   {"mount.guarded == true", "mount.guarded\n\tinput.object.spec.anything == 1", ""},
		"a helper of another name":   {"findings contains", "house contains 1\n\nfindings contains", ""},
		"a name that is of the rule": {"", "", ""},
	} {
		m := module("m", "a.rego", strings.Replace(goodRule, c.from, c.to, 1), "a_test.rego", passingTest)
		err := try(t, sources(t, m))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// crdSpec are the fields of a PipePolicy's spec as the API server knows them.
func crdSpec(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/pipeguard.dev_pipepolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
}

// The bounds of a policy's node rules stand in the CRD, and here for objects in files.
func TestNodeListsHaveTheBoundsOfTheCRD(t *testing.T) {
	spec := crdSpec(t)
	lists := 0
	both := maps.Clone(spec["subjects"].Items.Schema.Properties["node"].Properties)
	for name, list := range spec["node"].Properties {
		both["policy "+name] = list
	}
	for name, list := range both {
		name = strings.TrimPrefix(name, "policy ")
		if list.Type != "array" {
			continue
		}
		lists++
		want, ok := map[string][2]int64{"methods": {maxMethods, maxMethod}, "pathPrefixes": {maxPrefixes, maxPrefix}, "shares": {maxNames, maxShare}, "services": {maxNames, maxService}}[name]
		if name == "permits" && *list.MaxItems == maxPermits && *list.XListType == "set" { // they are listed there
			continue
		}
		if !ok || list.MaxItems == nil || list.Items.Schema.MaxLength == nil || list.XListType == nil {
			t.Errorf("%s is not bounded here or there", name)
			continue
		}
		if got := [2]int64{*list.MaxItems, *list.Items.Schema.MaxLength}; got != want || *list.XListType != "set" {
			t.Errorf("%s: %v in the CRD, and here %v", name, got, want)
		}
	}
	if lists != 7 {
		t.Errorf("%d lists", lists)
	}
}

// What the CRD takes for a limit is what nodes take.
func TestLimitsHaveTheBoundsOfTheCRD(t *testing.T) {
	limits := crdSpec(t)["subjects"].Items.Schema.Properties["node"].Properties["limits"].Properties
	if len(limits) != 3 {
		t.Fatalf("%d limits", len(limits))
	}
	for name, field := range limits {
		for n, isTaken := range map[int]bool{int(*field.Minimum): true, int(*field.Maximum): true, int(*field.Maximum) + 1: false, -1: false} {
			l := map[string]access.Limits{
				"connections": {Connections: n}, "callsPerSecond": {CallsPerSecond: n}, "burst": {CallsPerSecond: 1, Burst: n},
			}[name]
			faults := 0
			l.Check(func(string, string, ...any) { faults++ })
			if (faults == 0) != isTaken {
				t.Errorf("%s of %d: %d faults", name, n, faults)
			}
		}
	}
}

func TestABeginningThatEndsWithinANameIsAWarning(t *testing.T) {
	for image, want := range map[string]string{
		"r.example/driver*":    "write r.example/driver:* or r.example/driver/*",
		"r.example/driver:v1*": "write r.example/driver:v1.* or r.example/driver:v1-*",
		"r.example/driver:*":   "", "r.example/driver/*": "", "r.example/*": "", "r.example/driver:v1": "", "r.example/driver@*": "",
	} {
		p := pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Images = []string{image} })
		if faults := CheckPipePolicy(&p); len(faults) > 0 {
			t.Errorf("%s: %v", image, faults)
		}
		about := slices.DeleteFunc(Warnings(&p, time.Time{}), func(w string) bool { return !strings.Contains(w, "image") })
		if (want == "") != (len(about) == 0) || want != "" && !strings.HasSuffix(about[0], want) {
			t.Errorf("%s: %q", image, about)
		}
	}
	// What no node could be asked for is no beginning at admission either.
	p := pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Images = []string{"r.example:5000/team/dri-*"} })
	if faults := CheckPipePolicy(&p); len(faults) != 1 || !strings.Contains(faults[0].Error(), "must follow /, : or @") {
		t.Errorf("%v", faults)
	}
}

func TestTheMetadataOfPolicyObjectsIsBounded(t *testing.T) {
	many := map[string]string{}
	for i := range maxEntries + 1 {
		many[fmt.Sprint("example.com/l", i)] = "x"
	}
	long := strings.Repeat("x", maxExtra)
	for name, c := range map[string]struct {
		of   metav1.ObjectMeta
		want string
	}{
		"nothing":                 {metav1.ObjectMeta{Name: "p"}, ""},
		"as kubectl leaves it":    {metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 200<<10)}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}}, ""},
		"too many labels":         {metav1.ObjectMeta{Labels: many}, "metadata.labels"},
		"too many annotations":    {metav1.ObjectMeta{Annotations: many}, "metadata.annotations"},
		"too many finalizers":     {metav1.ObjectMeta{Finalizers: slices.Repeat([]string{"example.com/f"}, maxEntries+1)}, "metadata.finalizers"},
		"too many owners":         {metav1.ObjectMeta{OwnerReferences: slices.Repeat([]metav1.OwnerReference{{Name: "o"}}, maxEntries+1)}, "metadata.ownerReferences"},
		"an owner of a long name": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: types.UID(long)}}}, "metadata.ownerReferences"},
		"managed fields":          {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`"` + strings.Repeat("x", maxManaged) + `"`)}}}, "metadata.managedFields"},
	} {
		got := CheckMetadata(&c.of)
		if (len(got) == 0) != (c.want == "") || len(got) > 0 && got[0].Field != c.want {
			t.Errorf("%s: %v", name, got)
		}
		object := v1alpha1.PipePolicy{ObjectMeta: c.of, Spec: v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"x"}}}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Sources).Add(v1alpha1.GroupVersion().String(), KindPipePolicy, raw); (err == nil) != (c.want == "") {
			t.Errorf("%s, from a file: %v", name, err)
		}
	}
}
