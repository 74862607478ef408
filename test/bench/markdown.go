//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// markdown is what docs/performance.md shows.
func (f *figures) markdown() string {
	var b strings.Builder
	f.doubts(&b)
	f.createTable(&b)
	f.loadTable(&b)
	f.memoryTable(&b)
	f.policyTable(&b)
	return b.String()
}

// quiet is the share of the cores that an API server with nothing to do may use.
const quiet = 0.15

// doubts says why the figures are not what was to be measured, if they are not.
func (f *figures) doubts(b *strings.Builder) {
	var n, of int
	for _, c := range f.Creates {
		n, of = n+c.Undecided, of+c.All.Count
	}
	for _, l := range f.Loads {
		n, of = n+l.Undecided, of+l.Seen.Count
	}
	if n > 0 {
		fmt.Fprintf(b, "NOT QUIET: of %d requests %d were refused without a decision in time.\n\n", of, n)
	}
	for _, share := range f.Busy {
		if share > quiet {
			fmt.Fprintf(b, "NOT QUIET: %.0f %% of all cores were in use while nothing was asked.\n\n", 100*share)
		}
	}
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func head(b *strings.Builder, cells ...string) {
	row(b, cells...)
	b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
}

func (f *figures) createTable(b *strings.Builder) {
	if len(f.Creates) == 0 {
		return
	}
	head(b, "pod", "request", "at once", "no policy p50", "p99", "floor adds p50", "p99", "webhook adds p50", "p99", "both add p50", "p99")
	for i := 0; i+len(variants) <= len(f.Creates); i += len(variants) {
		none := f.Creates[i]
		request := "trial"
		if none.Stored {
			request = "create"
		}
		cells := []string{none.Pod, request, fmt.Sprint(none.Workers), ms(none.All.P50), ms(none.All.P99)}
		for _, variant := range f.Creates[i+1 : i+len(variants)] {
			p50, p99 := added(none, variant)
			cells = append(cells, signed(p50), signed(p99))
		}
		row(b, cells...)
	}
	b.WriteString("\n")
}

func (f *figures) loadTable(b *strings.Builder) {
	if len(f.Loads) == 0 {
		return
	}
	head(b, "review", "while", "served: mean", "p50", "p99", "within 1 ms", "seen by the sender: p50", "p99", "CPU")
	for _, l := range f.Loads {
		row(b, l.Review, l.While, us(l.Served.Mean),
			estimate(l.Served.P50, l.Served.P50Lower, l.Served.P50Upper), estimate(l.Served.P99, l.Served.P99Lower, l.Served.P99Upper),
			fmt.Sprintf("%.2f %%", 100*l.Served.WithinMillisecond), us(l.Seen.P50), us(l.Seen.P99), us(l.CPU))
	}
	fmt.Fprintf(b, "\nIdle: %.1f %% of one core.\n\n", 100*f.IdleCPU)
}

func (f *figures) memoryTable(b *strings.Builder) {
	head(b, "memory", "resident", "most meanwhile")
	for _, m := range f.Memory {
		row(b, m.When, mib(m.Resident), mib(m.Most))
	}
	b.WriteString("\n")
	if f.Scan.Pods > 0 {
		fmt.Fprintf(b, "A scan of %d pods with %d guarded mounts that nobody permits: %s, with the policy's takeover %s of CPU.\n\n",
			f.Scan.Pods, f.Scan.Findings, f.Scan.Took.Round(10*time.Millisecond), f.Scan.CPU)
	}
}

func (f *figures) policyTable(b *strings.Builder) {
	if len(f.Takeovers) == 0 {
		return
	}
	head(b, "a policy, until all replicas decide by it", "replicas", "policies stored", "API server's answer p50", "applied p50", "most", "removed p50", "most")
	for i, t := range f.Takeovers {
		row(b, fmt.Sprint(i+1), fmt.Sprint(t.Replicas), fmt.Sprint(t.Policies), ms(t.Stored.P50), ms(t.Applied.P50), ms(t.Applied.Max), ms(t.Removed.P50), ms(t.Removed.Max))
	}
	if m := f.Many; m.Policies > 0 {
		fmt.Fprintf(b, "\n%d policies: stored after %s, decided by after %s, every status says so after %s.\n",
			m.Policies, tenths(m.Created), tenths(m.Decided), tenths(m.Told))
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

func signed(d time.Duration) string {
	return strings.Replace(fmt.Sprintf("%+.2f ms", float64(d)/float64(time.Millisecond)), "-", "−", 1)
}

func us(d time.Duration) string {
	return fmt.Sprintf("%d µs", d.Round(time.Microsecond).Microseconds())
}

// estimate shows what a histogram tells, and in which bounds it is certain.
func estimate(d, lower, upper time.Duration) string {
	return fmt.Sprintf("%s (%d–%d)", us(d), lower.Microseconds(), upper.Microseconds())
}

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func tenths(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
