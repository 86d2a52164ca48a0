package tracing_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/tracing"
)

// TestHeaders starts with headers that the SDK cannot parse. The error names the variable
// and does not have the value, which may be a secret.
func TestHeaders(t *testing.T) {
	for _, headers := range []string{"Authorization: Bearer secret", "x-key=secret%zz", "=secret", "a=b,secret"} {
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
		_, err := tracing.Start(t.Context(), "http://127.0.0.1:9/v1/traces", "test", slog.New(slog.DiscardHandler))
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_HEADERS") {
			t.Errorf("%q: %v", headers, err)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20secret, x-key=1")
	tracer, err := tracing.Start(t.Context(), "http://127.0.0.1:9/v1/traces", "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tracer.Close()
}
