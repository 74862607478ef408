package config

import (
	"cmp"
	"net/url"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/copies"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/configfile"
)

// Audit says where the records of all requests go, how long they stay, and who signs them.
type Audit struct {
	// Path is the directory of the log, on a local disk. A full disk stops all calls, so give it room that pods cannot use up.
	// One proxy writes to it at a time, and only SYSTEM and administrators can open it. - is standard output, with nothing
	// signed and nothing kept. --audit-log on the command line goes before it. Without either it is
	// C:\ProgramData\Pipeguard\audit.
	Path string `yaml:"path"`
	// NoSync answers a call before its record is on the disk. It is faster, and a crash of the machine may lose the records
	// of operations that were carried out.
	NoSync bool `yaml:"noSync"`
	// OnFailure is what a log that cannot be written does to operations: fail_operation (the default) refuses them until it
	// can, shutdown also ends the process, and continue lets them run without a record.
	OnFailure segment.OnFailure `yaml:"onFailure"`
	// SegmentMiB is the length at which a file of the log is closed and the next one begun, 64 if not set.
	SegmentMiB int `yaml:"segmentMiB"`
	// SegmentAge is the age at which that happens, 24h if not set.
	SegmentAge time.Duration `yaml:"segmentAge"`
	// KeepMiB bounds what the files take together; the oldest are removed, which is recorded. Without it all are kept, and
	// a full disk refuses every call.
	KeepMiB int `yaml:"keepMiB"`
	// KeepAge is how long records stay, by the clock of this machine: an account that sets it can have records removed, which is
	// recorded. Without it they stay for ever.
	KeepAge time.Duration `yaml:"keepAge"`
	// Operations is how many admitted operations may be under way; room for their records is kept on the disk, 16 KiB each.
	// 1024 if not set, and at most 4096.
	Operations int `yaml:"operations"`
	// Signing says with which key checkpoints of the log are signed.
	Signing Signing `yaml:"signing"`
	// Witness is a server that cosigns checkpoints, and so knows a log that was rolled back.
	Witness Witness `yaml:"witness"`
	// Copies are other places for records. The log in Path alone counts: a copy that cannot be delivered is dropped and counted.
	Copies Copies `yaml:"copies"`
}

// Signing says with which key checkpoints of the log are signed. The key holder can write another log.
type Signing struct {
	// Key is the file of the private key, as pipeguard keys generate writes it. Without it, it is the path of the log
	// with -signing.key behind it, and is made at the first start of an empty log, its public half beside it in .pub.
	Key string `yaml:"key"`
	// Old is a file with the key before this one, which signs too until all verifiers have the new one.
	Old string `yaml:"old"`
}

// Witness is a server that cosigns checkpoints of logs, each only if it contains what was cosigned before.
type Witness struct {
	// URL is where it takes checkpoints, without /add-checkpoint: https://HOST/witness.
	URL string `yaml:"url"`
	// Key is its verifier key: NAME+HASH+BASE64.
	Key string `yaml:"key"`
	// CAFile has the certificates, in PEM, that the server must be signed by. Without it, those that the system trusts.
	CAFile string `yaml:"caFile"`
	// Interval is the least time between two questions, 1m if not set: what happened since the last one is not witnessed.
	Interval time.Duration `yaml:"interval"`
}

// Kinds of records that are copied.
const (
	CopyAll    = "all"
	CopyDenied = "denied" // what was refused or went wrong
)

// Copies are other places for records.
type Copies struct {
	// Stdout writes every record to standard output, for a log collector of containers.
	Stdout bool `yaml:"stdout"`
	// EventLog writes records to the Windows event log, source Pipeguard: denied (what was refused or went wrong, and the
	// log's own records) or all. Callers can then fill the event log. Not set, none.
	EventLog string `yaml:"eventLog"`
	// OTLP sends every record to an OpenTelemetry collector.
	OTLP OTLP `yaml:"otlp"`
}

// OTLP is an OpenTelemetry collector.
type OTLP struct {
	// Endpoint is HOST:PORT of its gRPC receiver.
	Endpoint string `yaml:"endpoint"`
	// CAFile has the certificates, in PEM, that it must be signed by. Without it, those that the system trusts.
	CAFile string `yaml:"caFile"`
	// Insecure sends records in plain text, to a collector on this machine.
	Insecure bool `yaml:"insecure"`
}

func (p *Proxy) checkAudit(add report) {
	a := p.Audit
	switch a.OnFailure {
	case "", segment.FailOperation, segment.Continue, segment.Shutdown:
	default:
		add("audit.onFailure", "%q: want %s, %s or %s", a.OnFailure, segment.FailOperation, segment.Shutdown, segment.Continue)
	}
	const mostMiB = 64 << 20
	add.number("audit.segmentMiB", a.SegmentMiB, 4096)
	add.number("audit.keepMiB", a.KeepMiB, mostMiB)
	add.number("audit.operations", a.Operations, segment.MaxOpen)
	size := cmp.Or(a.SegmentMiB, 64)
	if a.KeepMiB > 0 && a.KeepMiB < 2*size {
		add("audit.keepMiB", "%d: want room for two segments of %d at least", a.KeepMiB, size)
	}
	for _, d := range []struct {
		field string
		value time.Duration
		least time.Duration
	}{{"segmentAge", a.SegmentAge, time.Minute}, {"keepAge", a.KeepAge, time.Hour}, {"witness.interval", a.Witness.Interval, time.Second}} {
		if d.value != 0 && d.value < d.least {
			add("audit."+d.field, "%v: want %v at least", d.value, d.least)
		}
	}
	if a.Signing.Old != "" && a.Signing.Key == "" {
		add("audit.signing.old", "is of use with key only")
	}
	a.Witness.check(add)
	a.Copies.check(add)
	if a.Path == "-" && (a.Signing != Signing{} || a.Witness != Witness{} || a.Copies != Copies{} || a.KeepMiB != 0 || a.KeepAge != 0) {
		add("audit.path", "is standard output, which is not signed, kept or copied")
	}
}

// warnings are settings by which records can be missing.
func (a Audit) warnings() (faults []configfile.Fault) {
	if a.OnFailure == segment.Continue {
		faults = append(faults, configfile.Fault{Field: "audit.onFailure", Problem: "operations run without a record while the log cannot be written"})
	}
	if a.NoSync {
		faults = append(faults, configfile.Fault{Field: "audit.noSync", Problem: "a crash of the machine may lose records of operations that were carried out"})
	}
	return faults
}

func (w Witness) check(add report) {
	if w == (Witness{}) {
		return
	}
	if u, err := url.Parse(w.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		add("audit.witness.url", "%q: want https://HOST/witness", w.URL)
	}
	if w.Key == "" {
		add("audit.witness.key", "is not set: whose cosignature is it to be?")
	} else if err := evidence.CheckWitnessKey(w.Key); err != nil {
		add("audit.witness.key", "%v", err)
	}
}

func (c Copies) check(add report) {
	switch c.EventLog {
	case "", CopyAll, CopyDenied:
	default:
		add("audit.copies.eventLog", "%q: want %s or %s", c.EventLog, CopyDenied, CopyAll)
	}
	o := c.OTLP
	switch {
	case o == OTLP{}:
		return
	case o.Endpoint == "":
		add("audit.copies.otlp.endpoint", "is not set, so that the rest has no meaning")
		return
	}
	if err := copies.CheckEndpoint(o.Endpoint); err != nil {
		add("audit.copies.otlp.endpoint", "%v", err)
	}
	if o.Insecure && o.CAFile != "" {
		add("audit.copies.otlp.caFile", "is of no use with insecure")
	}
}
