package proxy

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/order"
)

// metrics are the series of csi-proxy.exe under their old names and labels, and our own.
//
// For each pipe: connections accepted = connections with a record + open + those whose record waits or is lost; and
// streams = requests with a terminal record + in flight + counted for the next summary + lost. The reconciler says so by another count, which is what to watch.
type metrics struct {
	reconciler *reconciler

	started, handled, received, sent *prometheus.CounterVec
	seconds                          *prometheus.HistogramVec

	accepted, connections, streams, terminals, refused, counted, decisions *prometheus.CounterVec
	inFlight                                                               *prometheus.GaugeVec
	auditErrors, auditLost, panics                                         prometheus.Counter
	limited, judged                                                        *prometheus.CounterVec
	queueFull, overdue                                                     prometheus.Counter
	backlog                                                                prometheus.Gauge
}

// buckets are those of csi-proxy.exe, in seconds.
var buckets = []float64{.001, .01, .1, .3, .6, 1, 3, 6, 9, 20, 30, 60, 90, 120}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	var errs []error
	register := func(c prometheus.Collector) { errs = append(errs, r.Register(c)) }
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		register(c)
		return c
	}
	one := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		register(c)
		return c
	}
	m := &metrics{
		reconciler: &reconciler{accounts: map[account]*balance{}},

		started:  vec("grpc_server_started_total", "Total number of RPCs started on the server.", "grpc_type", "grpc_service", "grpc_method"),
		handled:  vec("grpc_server_handled_total", "Total number of RPCs completed on the server, regardless of success or failure.", "grpc_type", "grpc_service", "grpc_method", "grpc_code"),
		received: vec("grpc_server_msg_received_total", "Total number of RPC stream messages received on the server.", "grpc_type", "grpc_service", "grpc_method"),
		sent:     vec("grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server.", "grpc_type", "grpc_service", "grpc_method"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grpc_server_handling_seconds", Buckets: buckets,
			Help: "Histogram of response latency (seconds) of gRPC that had been application-level handled by the server.",
		}, []string{"grpc_type", "grpc_service", "grpc_method"}),

		accepted:    vec("pipeguard_connections_accepted_total", "Connections accepted.", "pipe"),
		connections: vec("pipeguard_connection_records_total", "Connections whose record is written, or a summary that counts them.", "pipe", "result"),
		streams:     vec("pipeguard_streams_total", "Requests that arrived.", "pipe"),
		terminals:   vec("pipeguard_terminal_records_total", "Requests whose terminal record is written, or a summary that counts them.", "pipe", "result"),
		counted:     vec("pipeguard_refusals_counted_total", "Refused requests, and connections without an admitted one, that have no record of their own: a summary counts them.", "pipe", "kind"),
		refused:     vec("pipeguard_transport_refusals_total", "Requests that gRPC has refused without announcing them, one by one.", "pipe"),
		decisions:   vec("pipeguard_decisions_total", "Decisions of the access list.", "pipe", "effect", "mode"),
		judged:      vec("pipeguard_request_policy_denials_total", "Calls that the access list allowed and the request policy refused.", "pipe", "rule", "mode"),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_streams_in_flight", Help: "Requests whose terminal record is not written yet, and which no summary will count.",
		}, []string{"pipe"}),
		auditErrors: one("pipeguard_audit_errors_total", "Audit records that could not be written at the first attempt."),
		auditLost:   one("pipeguard_audit_lost_total", "Audit records that the log will never have: too many were waiting, or it was told to go on without."),
		panics:      one("pipeguard_panics_total", "Panics while serving a request."),
		limited:     vec("pipeguard_calls_limited_total", "Calls refused because their caller calls more often than it may.", "pipe"),
		queueFull:   one("pipeguard_operations_refused_total", "Calls refused because too many operations ran or waited."),
		overdue:     one("pipeguard_operations_overdue_total", "Operations that did not end when their time was over."),
		backlog: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_audit_backlog", Help: "Terminal records waiting for the audit log; while there are any, no call is admitted.",
		}),
	}
	register(m.seconds)
	register(m.inFlight)
	register(m.backlog)
	register(m.reconciler)
	return m, errors.Join(errs...)
}

// registerQueue shows how full the queue of operations is.
func registerQueue(r prometheus.Registerer, q *order.Queue) error {
	gauge := func(name, help string, value func(order.Load) float64) error {
		return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(q.Load()) }))
	}
	return errors.Join(
		gauge("pipeguard_operations_running", "Operations that the host carries out now.", func(l order.Load) float64 { return float64(l.Running) }),
		gauge("pipeguard_operations_waiting", "Calls that wait for their turn.", func(l order.Load) float64 { return float64(l.Waiting) }),
		gauge("pipeguard_operations_oldest_seconds", "How long the oldest running operation has run.", func(l order.Load) float64 { return l.Oldest.Seconds() }),
	)
}

// registerUnwritten shows how much is counted and in no record yet.
func registerUnwritten(r prometheus.Registerer, b *refusalCounter) error {
	return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pipeguard_refusals_waiting", Help: "Refusals that are counted, and whose summary is not written yet. A kill loses their number.",
	}, func() float64 { return float64(b.waiting()) }))
}

// pipe makes the series of a pipe, so that they read 0 and not nothing.
func (m *metrics) pipe(name string) {
	m.accepted.WithLabelValues(name)
	m.streams.WithLabelValues(name)
	m.refused.WithLabelValues(name)
	m.inFlight.WithLabelValues(name)
	m.limited.WithLabelValues(name)
	m.reconciler.change(name, kindConnection, func(*balance) {})
	m.reconciler.change(name, kindRequest, func(*balance) {})
}

// accept counts a connection, which is open until over.
func (m *metrics) accept(pipe string) {
	m.accepted.WithLabelValues(pipe).Inc()
	m.reconciler.change(pipe, kindConnection, func(b *balance) { b.arrived++; b.open++ })
}

// turnAway counts a connection that was accepted, is over, and is counted for the next summary.
func (m *metrics) turnAway(pipe string) {
	m.accepted.WithLabelValues(pipe).Inc()
	m.counted.WithLabelValues(pipe, kindConnection).Inc()
	m.reconciler.change(pipe, kindConnection, func(b *balance) { b.arrived++; b.waiting++ })
}

// opened counts what is to be counted as arrived at once and is not over before over is called.
func (m *metrics) opened(pipe, kind string) {
	m.reconciler.change(pipe, kind, func(b *balance) { b.open++ })
}

func (m *metrics) over(pipe, kind string) {
	m.reconciler.change(pipe, kind, func(b *balance) { b.open-- })
}

// arrived counts a request that is to have a terminal record.
func (m *metrics) arrived(pipe string) {
	m.streams.WithLabelValues(pipe).Inc()
	m.inFlight.WithLabelValues(pipe).Inc()
	m.reconciler.change(pipe, kindRequest, func(b *balance) { b.arrived++ })
}

// wait counts a terminal record that the log has not taken yet.
func (m *metrics) wait(e *audit.Event) {
	m.reconciler.change(e.What.Pipe, kindOf(e), func(b *balance) { b.waiting += int(e.Count()) }) // #nosec G115 -- counted one by one
}

// unwait counts a record that waited, and is part of a summary that waits from now on.
func (m *metrics) unwait(e *audit.Event) {
	m.counted.WithLabelValues(e.What.Pipe, kindOf(e)).Add(float64(e.Count()))
	if kindOf(e) == kindRequest {
		m.inFlight.WithLabelValues(e.What.Pipe).Sub(float64(e.Count()))
	}
}

// count counts a refusal that a summary will stand for.
func (m *metrics) count(e *audit.Event) {
	m.wait(e)
	m.unwait(e)
}

// summarised counts a summary that is durable.
func (m *metrics) summarised(e *audit.Event) {
	n := e.Count()
	m.reconciler.change(e.What.Pipe, kindOf(e), func(b *balance) { b.recorded += int(n); b.waiting -= int(n) }) // #nosec G115 -- counted one by one
	m.written(e, n)
}

// written counts what a record stands for.
func (m *metrics) written(e *audit.Event, n uint64) {
	series := m.terminals
	if e.Type == audit.TypeConnection {
		series = m.connections
	}
	series.WithLabelValues(e.What.Pipe, e.Outcome.Result).Add(float64(n))
}

// lose counts a terminal record that the log will never have.
func (m *metrics) lose(e *audit.Event) {
	m.auditLost.Inc()
	if kindOf(e) == kindRequest {
		m.inFlight.WithLabelValues(e.What.Pipe).Dec()
	}
}

// recorded counts a terminal record that is durable; waited says that it was counted as waiting.
func (m *metrics) recorded(e *audit.Event, waited bool) {
	n := e.Count()
	m.reconciler.change(e.What.Pipe, kindOf(e), func(b *balance) {
		if b.recorded += int(n); waited { // #nosec G115 -- counted one by one
			b.waiting -= int(n) // #nosec G115 -- as above
		}
	})
	m.written(e, n)
	if kindOf(e) == kindRequest {
		m.inFlight.WithLabelValues(e.What.Pipe).Sub(float64(n))
	}
}

// rpc keeps the series of csi-proxy.exe.
func (m *metrics) rpc(label [3]string, event stats.RPCStats) {
	kind, service, method := label[0], label[1], label[2]
	switch e := event.(type) {
	case *stats.Begin:
		m.started.WithLabelValues(kind, service, method).Inc()
	case *stats.InPayload:
		m.received.WithLabelValues(kind, service, method).Inc()
	case *stats.OutPayload:
		m.sent.WithLabelValues(kind, service, method).Inc()
	case *stats.End:
		m.handled.WithLabelValues(kind, service, method, status.Code(e.Error).String()).Inc()
		m.seconds.WithLabelValues(kind, service, method).Observe(e.EndTime.Sub(e.BeginTime).Seconds())
	}
}
