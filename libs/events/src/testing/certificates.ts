import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** PEM files of an authority, a server certificate for 127.0.0.1 and localhost, and a client certificate. */
export interface TestCertificates {
  readonly caFile: string;
  readonly serverCertFile: string;
  readonly serverKeyFile: string;
  readonly clientCertFile: string;
  readonly clientKeyFile: string;
}

/** Whether openssl is available to make certificates. */
export function hasOpenssl(): boolean {
  return spawnSync(OPENSSL, ["version"]).status === 0;
}

export async function makeCertificates(dir: string): Promise<TestCertificates> {
  const caFile = join(dir, "ca.pem");
  const caKeyFile = join(dir, "ca-key.pem");
  openssl(...NEW_KEY, "-x509", "-subj", "/CN=test authority", "-keyout", caKeyFile, "-out", caFile);
  const issue = async (name: string, extensions: string) => {
    const [keyFile, requestFile, certFile, extensionFile] = ["-key.pem", ".csr", ".pem", ".ext"].map((ending) =>
      join(dir, `${name}${ending}`),
    ) as [string, string, string, string];
    await writeFile(extensionFile, extensions);
    openssl(...NEW_KEY, "-subj", `/CN=${name}`, "-keyout", keyFile, "-out", requestFile);
    openssl(
      ...["x509", "-req", "-in", requestFile, "-CA", caFile, "-CAkey", caKeyFile],
      ...["-CAcreateserial", "-days", "1", "-extfile", extensionFile, "-out", certFile],
    );
    return { keyFile, certFile };
  };
  const server = await issue("server", "subjectAltName=IP:127.0.0.1,DNS:localhost");
  const client = await issue("client", "extendedKeyUsage=clientAuth");
  return {
    caFile,
    serverCertFile: server.certFile,
    serverKeyFile: server.keyFile,
    clientCertFile: client.certFile,
    clientKeyFile: client.keyFile,
  };
}

const OPENSSL = "openssl";
const NEW_KEY = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function openssl(...args: readonly string[]): void {
  const { status, stderr } = spawnSync(OPENSSL, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl failed: ${stderr}`);
}
