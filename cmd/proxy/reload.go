package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/activerules"
)

// live is the access list of the node's own configuration, reloaded when the file changes.
type live struct {
	file    string
	load    func() (config.Proxy, error)
	started config.Proxy // what the process was started with
	build   func(config.Proxy) (*proxy.Rules, error)
	rules   *activerules.Set
	modules atomic.Pointer[string] // the directory of Rego of the configuration in force
	asked   chan struct{}          // has room for one: a request that waits stands for all that come meanwhile
	log     *zap.Logger

	refused string // why the last file was refused; only reload uses it

	reloads *prometheus.CounterVec
	success prometheus.Gauge
	info    *prometheus.GaugeVec

	mu     sync.Mutex // guards warned
	warned string     // the keys that were last said to need a restart
}

func newLive(f *flags, started config.Proxy, build func(config.Proxy) (*proxy.Rules, error), active *activerules.Set, log *zap.Logger) *live {
	l := &live{
		file: f.config, load: f.loadConfig, started: started, build: build, rules: active, asked: make(chan struct{}, 1), log: log,
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pipeguard_config_reloads_total", Help: "Attempts to reload the configuration, by result.",
		}, []string{"result"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pipeguard_config_last_reload_success_timestamp_seconds", Help: "When the configuration that holds was loaded, as Unix time.",
		}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pipeguard_config_info", Help: "The revision of the access list that holds, always 1.",
		}, []string{"revision"}),
	}
	for _, result := range []string{"success", "failure"} {
		l.reloads.WithLabelValues(result)
	}
	return l
}

func (l *live) register(registry prometheus.Registerer) {
	registry.MustRegister(l.reloads, l.success, l.info)
}

func (l *live) use(settings config.Proxy, rules *proxy.Rules) {
	l.modules.Store(&settings.RequestPolicy.Modules)
	l.rules.Use(rules)
	l.success.SetToCurrentTime()
	l.info.Reset()
	l.info.WithLabelValues(rules.Policy.Revision).Set(1)
}

// revision is that of the access list in force.
func (l *live) revision() string { return l.rules.Local().Policy.Revision }

// works is a health check of the bundle.
func (l *live) works() error {
	if err := l.rules.Valid(); err != nil {
		return fmt.Errorf("bundle: every call is denied: %w", err)
	}
	return nil
}

// ask has the file read soon, changed or not.
func (l *live) ask() {
	select {
	case l.asked <- struct{}{}:
	default:
	}
}

// follow reloads whenever the file changes or ask was called, until ctx is done. Without a file there is nothing to read.
func (l *live) follow(ctx context.Context) {
	if l.file == "" {
		<-ctx.Done()
		return
	}
	var group sync.WaitGroup
	group.Go(func() {
		dir := func() string { return *l.modules.Load() }
		followModules(ctx, modulesInterval, dir, l.ask, func(err error) { l.late(dir(), err) })
	})
	defer group.Wait()
	late := func(err error) { l.late(l.file, err) }
	config.Follow(ctx, l.file, l.started.Digest(), config.FollowOptions{Asked: l.asked, Late: late}, l.reload)
}

// late logs a file or directory that cannot be read in time. It may be called by several goroutines.
func (l *live) late(path string, err error) {
	l.reloads.WithLabelValues("failure").Inc()
	l.log.Error("CONFIGURATION NOT READ: the access list that was loaded before goes on to hold", event(eventReloadFailed),
		zap.String(logkeys.Path, path), zap.String(logkeys.Revision, l.revision()), zap.Error(err))
}

// reload puts the file's access list in force, or keeps the one in force if the file is invalid. It asks to be called again for a file that
// could not be loaded: its owner, its mode or the files that it names may be corrected without a change of its content.
func (l *live) reload(isAgain bool) (again bool) {
	var rules *proxy.Rules
	settings, err := l.load()
	again = err != nil
	if err == nil && settings.IsMissing() {
		err = errors.New("the file is gone")
	}
	if err == nil {
		rules, err = l.build(settings)
	}
	if err != nil {
		before := l.refused
		if l.refused = err.Error(); isAgain && l.refused == before {
			return again
		}
		l.reloads.WithLabelValues("failure").Inc()
		l.log.Error("CONFIGURATION REFUSED: the access list that was loaded before goes on to hold", event(eventReloadFailed),
			zap.String(logkeys.Config, l.file), zap.String(logkeys.Revision, l.revision()), zap.Error(err))
		return again
	}
	before := l.revision()
	l.use(settings, rules)
	l.reloads.WithLabelValues("success").Inc()
	l.log.Info("access list reloaded", event(eventReloaded), zap.String(logkeys.Config, l.file),
		zap.String(logkeys.Revision, l.revision()), zap.String(logkeys.Note, "before "+before))
	l.warn(settings)
	return false
}

// warn names changed keys that take effect at the next start alone, once for each set of them.
func (l *live) warn(settings config.Proxy) {
	keys := settings.RestartNeeded(l.started)
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprint(keys)
	if text == l.warned {
		return
	}
	l.warned = text
	if len(keys) > 0 {
		l.log.Warn("settings have changed that take effect when the proxy is started again", event(eventNeedsRestart),
			zap.String(logkeys.Config, l.file), zap.Strings(logkeys.Name, keys))
	}
}
