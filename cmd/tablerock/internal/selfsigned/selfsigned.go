// Package selfsigned makes certificates for development, which clients have to trust.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
)

// The files of a certificate in a data directory. No account can have these names.
const (
	CertFile = "self-signed.crt"
	KeyFile  = "self-signed.key"
)

// validity is the validity of a certificate. Clients accept no longer one.
const validity = 365 * 24 * time.Hour

// In returns the certificate that dir has, so that clients trust a server after a restart, too.
// If there is none that is valid for host, now and for another day, In makes one and writes it there.
func In(dir, host string) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile)
	if err := errors.Join(openfile.Regular(certFile), openfile.Regular(keyFile)); err != nil {
		return tls.Certificate{}, fmt.Errorf("--self-signed: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil && pair.Leaf.VerifyHostname(host) == nil && !time.Now().Before(pair.Leaf.NotBefore) && time.Until(pair.Leaf.NotAfter) >= 24*time.Hour {
		return pair, nil
	}
	cert, key, err := New(host)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(keyFile, key, 0o600),
		os.WriteFile(certFile, cert, 0o600),
	); err != nil {
		return tls.Certificate{}, fmt.Errorf("--self-signed: %w", err)
	}
	return tls.X509KeyPair(cert, key)
}

// New makes a certificate for host and for all names of this machine.
func New(host string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Tablerock, for development"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost", "*.table.localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else if host != "localhost" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}
