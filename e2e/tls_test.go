package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// certificate writes a new certificate for loopback and its key as PEM files.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	roots = x509.NewCertPool()
	roots.AddCert(must(x509.ParseCertificate(der))(t))
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))(t)), roots
}

// trusting returns client options that trust the given certificates, or any if nil.
func trusting(t *testing.T, roots *x509.CertPool) *aztables.ClientOptions {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, InsecureSkipVerify: roots == nil}}
	t.Cleanup(transport.CloseIdleConnections)
	return optionsWith(&http.Client{Transport: transport})
}

// TestHTTPS runs the common operations over TLS.
func TestHTTPS(t *testing.T) {
	cert, key, roots := certificate(t)
	for _, c := range []struct {
		name  string
		flags []string
		roots *x509.CertPool
	}{
		{"a certificate", []string{"--cert", cert, "--key", key}, roots},
		{"a self-signed certificate", []string{"--self-signed"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, filepath.Join(t.TempDir(), "data"), nil, c.flags...)
			o := trusting(t, c.roots)
			service := must(aztables.NewServiceClientWithSharedKey(s.url, s.credential(t), o))(t)
			must(service.CreateTable(t.Context(), "Table", nil))(t)
			client := service.NewClient("Table")
			must(client.SubmitTransaction(t.Context(), adds(100), nil))(t)
			if n := len(rows(t, client, "")); n != 100 {
				t.Errorf("%d rows, want 100", n)
			}
			resp := must(client.GetEntity(t.Context(), "p", "r007", &aztables.GetEntityOptions{Format: pointer(aztables.MetadataFormatFull)}))(t)
			if got, want := members(t, resp.Value)["odata.id"], s.url+"/Table(PartitionKey='p',RowKey='r007')"; got != want {
				t.Errorf("odata.id: got %v, want %s", got, want)
			}
			// The account signature of the SDK is for HTTPS only.
			signed := must(service.GetAccountSASURL(aztables.AccountSASResourceTypes{Object: true}, aztables.AccountSASPermissions{Read: true},
				time.Now().Add(-time.Minute), time.Now().Add(time.Hour)))(t)
			guest := must(aztables.NewServiceClientWithNoCredential(signed, o))(t)
			get(t, guest.NewClient("Table"), "p", "r000")
		})
	}
}

// token is a bearer token without a valid signature.
type token struct{ change map[string]any }

func (k token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	now := time.Now()
	claims := map[string]any{
		"iss": "https://sts.windows.net/11111111-2222-3333-4444-555555555555/", "aud": "https://storage.azure.com",
		"iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, v := range k.change {
		claims[name] = v
	}
	text := ""
	for _, section := range []any{map[string]string{"alg": "RS256", "typ": "JWT"}, claims} {
		b, err := json.Marshal(section)
		if err != nil {
			return azcore.AccessToken{}, err
		}
		text += base64.RawURLEncoding.EncodeToString(b) + "."
	}
	return azcore.AccessToken{Token: text + base64.RawURLEncoding.EncodeToString([]byte("signature")), ExpiresOn: now.Add(time.Hour)}, nil
}

func TestBearer(t *testing.T) {
	cert, key, roots := certificate(t)
	s := start(t, filepath.Join(t.TempDir(), "data"), nil, "--cert", cert, "--key", key, "--oauth", "basic")
	o := trusting(t, roots)
	client := func(change map[string]any) *aztables.ServiceClient {
		return must(aztables.NewServiceClient(s.url, token{change}, o))(t)
	}
	service := client(nil)
	must(service.CreateTable(t.Context(), "Table", nil))(t)
	table := service.NewClient("Table")
	must(table.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	get(t, table, "p", "r")
	_, err := table.GetAccessPolicy(t.Context(), nil)
	wantRefusal(t, err, refusal{404, "ResourceNotFound"})
	for name, change := range map[string]map[string]any{
		"expired":          {"exp": time.Now().Add(-time.Hour).Unix()},
		"not yet valid":    {"nbf": time.Now().Add(time.Hour).Unix()},
		"another audience": {"aud": "https://example.org"},
		"another issuer":   {"iss": "https://example.org/"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusalOf(listOnce(t)(client(change))).status; got != 401 && got != 403 {
				t.Errorf("got %d, want 401 or 403", got)
			}
		})
	}
}
