package config

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// ProxyKind is the kind of the file that Proxy describes.
const ProxyKind = "ProxyConfig"

// Proxy is the configuration of the node proxy. An account that can write this file decides which program may act
// on the node with the proxy's own rights: it needs the same protection as the proxy's executable.
type Proxy struct {
	// APIVersion is pipeguard.dev/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// Kind is ProxyConfig.
	Kind string `yaml:"kind"`
	// ACL says who may call what. Without it every call is denied.
	ACL ACL `yaml:"acl"`
	// Audit says where records go, how long they stay, and who signs them.
	Audit Audit `yaml:"audit"`
	// Limits bound what callers can use up.
	Limits Limits `yaml:"limits"`
	// Log says where diagnostics go.
	Log Log `yaml:"log"`
	// Containers says how a caller's process leads to its container and pod.
	Containers Containers `yaml:"containers"`
	// Tokens says which pipes look at their callers' tokens.
	Tokens Tokens `yaml:"tokens"`
	// RequestPolicy is asked about each call that the access list has allowed.
	RequestPolicy RequestPolicy `yaml:"requestPolicy"`
	// Bundle is where this node gets the policies of the cluster from.
	Bundle Bundle `yaml:"bundle"`
	// Backend is who carries out the calls of CSI Proxy's pipes that are allowed: windows (this process), upstream (a
	// csi-proxy.exe whose pipes have other names), or memory (an invented machine, for trials; on Windows only in a program built with -tags fakehost). --host on the command
	// line goes before it. Without either it is windows, and memory outside Windows.
	Backend string `yaml:"backend"`
	// Upstream is where the backend upstream is.
	Upstream Upstream `yaml:"upstream"`
	// Forward are pipes of other gRPC servers, guarded in the same way.
	Forward []Forward `yaml:"forward"`
	// Pipes let more accounts open pipes.
	Pipes []PipeAccess `yaml:"pipes"`

	file   configfile.File
	digest Digest
	policy *acl.Policy
}

// ACL is the access list of all pipes.
type ACL struct {
	// Pipes sets the mode of pipes. A pipe in LogOnly mode serves every process that can open it: use it to learn
	// what a driver calls, on nodes that could do without the guard for that time.
	Pipes []acl.PipeMode `yaml:"pipes"`
	// Rules allow; what no rule allows is denied. The first that covers a call is recorded, and its permits and limits hold;
	// rules that name the caller for it come before those that do not.
	Rules []acl.Rule `yaml:"rules"`
	// Profiles are ready-made rules for known drivers, which come after Rules.
	Profiles []Profile `yaml:"profiles"`
	// Limits hold for every caller for whom the rule that decides sets none.
	Limits access.Limits `yaml:"limits"`
}

// Limits bound what callers can use up. Zero values mean the defaults of the proxy, and are refused in a file.
type Limits struct {
	// Connections is the number of open connections to one pipe of callers that rules name, 256 if not set. Those that no rule
	// names share a sixteenth of it, besides.
	Connections int `yaml:"connections"`
	// ConnectionsPerCaller is the number of those that one caller may hold, 64 if not set: a container, or
	// where none is proven all processes of an account that run the same program. A driver needs two for each pipe.
	ConnectionsPerCaller int `yaml:"connectionsPerCaller"`
	// PrefaceTimeout is how long a connection may stay open before it says anything, 20s if not set.
	PrefaceTimeout time.Duration `yaml:"prefaceTimeout"`
	// StopTimeout is how long a stop waits for calls in flight before it cancels them, 20s if not set.
	StopTimeout time.Duration `yaml:"stopTimeout"`
	// Operations is how many operations the host carries out at once, over all pipes, 64 if not set.
	Operations int `yaml:"operations"`
	// Waiting is how many calls may wait for those, or for another call on the same disk, volume, path, share, target or
	// service, 256 if not set. Calls beyond it are refused.
	Waiting int `yaml:"waiting"`
	// OperationTimeout is how long an operation may take before it is given up, 10m if not set. A caller that leaves
	// earlier does not end an operation that changes the host.
	OperationTimeout time.Duration `yaml:"operationTimeout"`
}

// Log says where diagnostics go. They are not the record of what was done: that is the audit log.
type Log struct {
	// Path is a file, made anew when it is full. -log_file on the command line goes before it. Without either diagnostics
	// go to standard error, which a service does not have.
	Path string `yaml:"path"`
	// MaxSizeMB is the size in MiB at which the file is renamed and a new one begun, 100 if not set. -log_file_max_size on
	// the command line goes before it.
	MaxSizeMB int `yaml:"maxSizeMB"`
	// MaxBackups is how many renamed files are kept, 5 if not set.
	MaxBackups int `yaml:"maxBackups"`
	// MaxAgeDays is after how many days a renamed file is removed, 30 if not set.
	MaxAgeDays int `yaml:"maxAgeDays"`
	// EventLog also reports starts, stops and faults to the Windows event log, source Pipeguard. A service always does.
	EventLog bool `yaml:"eventLog"`
}

// Values of Proxy.Backend.
const (
	BackendWindows  = "windows"
	BackendMemory   = "memory"
	BackendUpstream = "upstream"
)

// Upstream is a csi-proxy.exe that serves pipes of other names.
type Upstream struct {
	// Pipe is the name of its pipes, without \\.\pipe\, with one "*" where GROUP-VERSION stands: "upstream-csi-proxy-*".
	// Pods must not be able to mount it.
	Pipe string `yaml:"pipe"`
	// Exe is the full path of the program that must be serving them. Without it the process that made the pipe first is trusted.
	Exe string `yaml:"exe"`
	// Groups are the API groups that it serves. Without it, all six.
	Groups []string `yaml:"groups"`
}

// Forward is a pipe whose calls, if allowed, are passed on as they are to the gRPC server on another pipe.
type Forward struct {
	// Pipe is the name that pods mount, without \\.\pipe\. It must not begin with csi-proxy-.
	Pipe string `yaml:"pipe"`
	// To is the name of the server's own pipe, without \\.\pipe\. Pods must not be able to mount it.
	To string `yaml:"to"`
	// Exe is the full path of the program that must be serving To. Without it the process that made the pipe first is trusted.
	Exe string `yaml:"exe"`
}
