package front

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Options say how much clients may hold at a time.
type Options struct {
	// Connections is how many may be open. One more closes those that wait for a
	// request for longest. The default is 8,192.
	Connections int
	// ConnectionsPerAddr is how many may be open from one address, or one IPv6
	// network of 64 bits; loopback has no such limit. The default is 64.
	ConnectionsPerAddr int
	// TLS says how TLS is spoken. The default is nil, for plain HTTP.
	TLS *tls.Config
	// Logger receives what is wrong with connections. The default is silence.
	Logger *slog.Logger
	// Now tells the time. The default is time.Now.
	Now func() time.Time
}

// Front stands between the network and a handler, and bounds what connections
// cost: their number, the time for headers, for bodies and for answers. All
// methods may be called concurrently.
type Front struct {
	http     http.Server
	listener *listener
}

// What a request may take.
const (
	headerTime     = 5 * time.Second
	idleTime       = time.Minute
	answerTime     = time.Minute // from the request's headers to the end of its answer
	maxHeaderBytes = 32 << 10
	maxStreams     = 100 // of one HTTP/2 connection
)

// bodyPace is how fast bodies have to arrive.
var bodyPace = pace{grace: 5 * time.Second, perSecond: 8 << 10, most: 30 * time.Second}

// New returns a Front that takes its connections from l, which becomes its
// own, and its answers from h.
func New(l net.Listener, h http.Handler, o Options) *Front {
	if o.Connections == 0 {
		o.Connections = 8192
	}
	if o.ConnectionsPerAddr == 0 {
		o.ConnectionsPerAddr = 64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = systemNow
	}
	f := &Front{listener: limit(l, o.Connections, o.ConnectionsPerAddr, o.Now)}
	f.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
				// The request may have had a length as well, which net/http hides. What
				// another took for the end of the body is not to be read as a request:
				// RFC 9112, section 6.3.
				w.Header().Set("Connection", "close")
			}
			r = watchBody(w, r, bodyPace, o.Now)
			h.ServeHTTP(w, r)
			drain(r)
		}),
		TLSConfig:                    o.TLS,
		ReadHeaderTimeout:            headerTime,
		IdleTimeout:                  idleTime,
		WriteTimeout:                 answerTime,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState:                    f.listener.state,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	f.http.RegisterOnShutdown(f.listener.closeUnused)
	return f
}

// Serve answers until Shutdown or Close, and then returns nil at once.
func (f *Front) Serve() error {
	var err error
	if f.http.TLSConfig != nil {
		err = f.http.ServeTLS(f.listener, "", "")
	} else {
		err = f.http.Serve(f.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown takes no more connections, waits until what runs is answered, and
// returns nil. If ctx ends before, it cuts off the rest and returns ctx's error.
func (f *Front) Shutdown(ctx context.Context) error {
	err := f.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, f.http.Close())
	}
	return err
}

// Connections returns how many are open.
func (f *Front) Connections() int { return f.listener.connections() }
