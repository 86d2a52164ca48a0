// Package tracing sends a span of each request to a collector of OpenTelemetry.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tablerock-db/tablerock/server"
)

// scope names the source of the spans.
const scope = "github.com/tablerock-db/tablerock"

// tracesPath is the path of the collector's HTTP API.
const tracesPath = "/v1/traces"

// Endpoint returns the URL to which spans are sent: text, with the path /v1/traces if it has
// none. The error says what is wrong with text.
func Endpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("give the http or https URL of a collector, such as http://127.0.0.1:4318")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("give a URL with a host and a path only, and credentials in OTEL_EXPORTER_OTLP_HEADERS")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// Tracer makes spans and sends them in the background. It drops spans if the collector is too
// slow. Its methods may be called concurrently. Those of a nil Tracer do nothing.
type Tracer struct {
	provider   *sdk.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TraceContext
}

// Start returns a Tracer for an endpoint that Endpoint returned. The variables
// OTEL_EXPORTER_OTLP_*, OTEL_TRACES_SAMPLER, OTEL_BSP_* and OTEL_RESOURCE_ATTRIBUTES
// configure the rest. Failures to send are logged.
func Start(ctx context.Context, endpoint, version string, log *slog.Logger) (*Tracer, error) {
	otel.SetLogger(logr.Discard()) // it prints the values of variables that it cannot parse
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if !validHeaders(os.Getenv(name)) {
			return nil, fmt.Errorf("trace: environment variable %s is not of the form name=value,name=value, with other characters as %%XX", name)
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans were not sent", "err", err.Error()) }))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	// Attributes of the environment win. There are none of the process, because a command
	// line can contain keys.
	r, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "tablerock"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(r))
	return &Tracer{provider: p, tracer: p.Tracer(scope)}, nil
}

// validHeaders reports whether the SDK can parse all headers of a variable.
func validHeaders(text string) bool {
	if strings.TrimSpace(text) == "" {
		return true
	}
	for header := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(header, "=")
		if _, err := url.PathUnescape(value); !ok || err != nil || strings.TrimSpace(name) == "" {
			return false
		}
	}
	return true
}

// maxFlush limits the time for the last spans.
const maxFlush = 5 * time.Second

// Close sends the remaining spans. A failure is logged.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxFlush)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// Handler returns next with a span for each request, whose parent is that of the header
// traceparent. Observe completes the span.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Observe adds the outcome of a request to its span: no key, path, query or content.
func (t *Tracer) Observe(e server.Event) {
	if t == nil {
		return
	}
	span := trace.SpanFromContext(e.Context)
	if !span.IsRecording() {
		return
	}
	if e.Operation != "" {
		span.SetName(e.Operation)
	}
	span.SetAttributes(
		attribute.Int("http.response.status_code", e.Status),
		attribute.String("tablerock.operation", e.Operation),
		attribute.String("tablerock.account", e.Account),
		attribute.String("tablerock.table", e.Table),
		attribute.String("tablerock.code", e.Code),
		attribute.Int("tablerock.rows.examined", e.Examined),
		attribute.Int("tablerock.rows.returned", e.Returned),
		attribute.String("tablerock.request_id", e.RequestID),
	)
	if e.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, e.Code)
	}
}
