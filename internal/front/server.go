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

// Options configures the limits of a Server.
type Options struct {
	// Connections limits the open connections. A connection above the limit closes
	// those that have been idle for longest. The default is 8,192.
	Connections int
	// ConnectionsPerAddr limits the open connections from one address, or from one
	// IPv6 /64 network. Loopback addresses have no such limit. The default is 64.
	ConnectionsPerAddr int
	// Refuse responds to a request of HTTP/2 whose body cannot wait for other requests. The default
	// is status 503 without a body.
	Refuse http.HandlerFunc
	// TLS configures TLS. The default, nil, is plain HTTP.
	TLS *tls.Config
	// Logger receives errors of connections. The default discards them.
	Logger *slog.Logger
	// Now returns the current time. The default is time.Now.
	Now func() time.Time
}

// Server is an HTTP server that limits the number of connections and the time for
// headers, bodies and responses. All methods are safe for concurrent use.
type Server struct {
	http     http.Server
	listener *listener
	streams  streams
}

// Limits of a request.
const (
	headerTime     = 5 * time.Second
	idleTime       = time.Minute
	responseTime   = time.Minute // from the end of the request's header to the end of the response
	maxHeaderBytes = 32 << 10
	maxFields      = 256 // of a header: each has some 90 bytes of memory beside its text
)

// bodyRate is the minimum rate of bodies.
var bodyRate = minRate{grace: 5 * time.Second, bytesPerSecond: 8 << 10, limit: 30 * time.Second}

// New returns a Server that accepts connections from l and serves them with h. The
// Server owns l.
func New(l net.Listener, h http.Handler, o Options) *Server {
	if o.Connections == 0 {
		o.Connections = 8192
	}
	if o.ConnectionsPerAddr == 0 {
		o.ConnectionsPerAddr = 64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refuse == nil {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	}
	if o.Now == nil {
		o.Now = systemNow
	}
	s := &Server{listener: newListener(l, o.Connections, o.ConnectionsPerAddr, o.Now), streams: streams{make(chan struct{}, spareStreams)}}
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 && (r.TLS == nil || r.TLS.NegotiatedProtocol != "h2") {
				// net/http accepts PRI * HTTP/2.0, and reads its body as one of HTTP/1.1.
				r.ProtoMajor, r.ProtoMinor, r.Proto = 1, 1, "HTTP/1.1"
			}
			if fields(r) > maxFields {
				// Else net/http keeps them until the client has read the response.
				r.Header, r.Trailer = http.Header{"Expect": r.Header["Expect"]}, nil
				w.Header().Set("Connection", "close")
				w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
				drain(limitBody(w, r, bodyRate, o.Now)) // net/http would wait for the body without a limit
				return
			}
			if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
				// The request may also have had a Content-Length, which net/http hides.
				// A proxy may disagree about the end of the body, so do not read another
				// request from this connection: RFC 9112, section 6.3.
				w.Header().Set("Connection", "close")
			}
			end, refused := s.streams.begin(r)
			if refused {
				o.Refuse(w, r)
			}
			if end == nil {
				return
			}
			defer end()
			r = limitBody(w, r, bodyRate, o.Now)
			h.ServeHTTP(w, r)
			drain(r)
		}),
		TLSConfig:                    o.TLS,
		ReadHeaderTimeout:            headerTime,
		IdleTimeout:                  idleTime,
		ReadTimeout:                  responseTime, // net/http waits for the body after it has refused an Expect
		WriteTimeout:                 responseTime,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState:                    s.listener.state,
		ConnContext:                  s.streams.context,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxReceived,
			WriteByteTimeout: responseTime, // WriteTimeout only ends streams, and not the write to a client that reads nothing
		},
	}
	s.http.RegisterOnShutdown(s.listener.closeUnused)
	return s
}

// fields returns the number of fields of r's header and of the trailer that it announces.
func fields(r *http.Request) int {
	n := len(r.Trailer)
	for _, values := range r.Header {
		n += len(values)
	}
	return n
}

// Serve serves requests until Shutdown is called. It then returns nil at once.
func (s *Server) Serve() error {
	var err error
	if s.http.TLSConfig != nil {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops accepting connections, waits for the running requests and returns
// nil. If ctx ends first, it closes the remaining connections and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return err
}

// LimitConnections replaces Options.Connections by n, at least 1. It closes connections above the limit
// that are idle.
func (s *Server) LimitConnections(n int) { s.listener.limit(n) }

// Connections returns the number of open connections.
func (s *Server) Connections() int { return s.listener.connections() }
