import { AUTHORITY_PATH, type TlsSource } from "@rollcall/identity";
import { sendWhole } from "../answers/answer-error.ts";
import { notFound } from "../answers/answer-unknown-path.ts";
import type { HttpHandler } from "../calls/http-handler.ts";

/**
 * Create a handler that answers GET /ca.pem with the certificate authority of the server, for clients that know only
 * its fingerprint. Any client can read it. Other requests go to `otherwise`.
 */
export function serveAuthority(tls: Pick<TlsSource, "authority">, otherwise: HttpHandler = notFound): HttpHandler {
  return (request, response) => {
    const [path] = (request.url ?? "").split("?", 1);
    const { authority } = tls;
    if (path !== AUTHORITY_PATH || request.method !== "GET" || authority === null) otherwise(request, response);
    else sendWhole(request, response, 200, { "content-type": "application/x-pem-file" }, authority);
  };
}
