import { AUTHORITY_PATH, type TlsSource } from "@rollcall/identity";
import type { HttpHandler } from "../calls/http-handler.ts";
import { sendWhole } from "./answer-error.ts";
import { notFound } from "./answer-unknown-path.ts";

/**
 * A fallback that answers GET /ca.pem with the authority of the server's certificate, for clients that know nothing but
 * its fingerprint, and leaves all else to `otherwise`. Any client may have it: it is public.
 */
export function serveAuthority(tls: Pick<TlsSource, "authority">, otherwise: HttpHandler = notFound): HttpHandler {
  return (request, response) => {
    const [path] = (request.url ?? "").split("?", 1);
    const { authority } = tls;
    if (path !== AUTHORITY_PATH || request.method !== "GET" || authority === null) otherwise(request, response);
    else sendWhole(request, response, 200, { "content-type": "application/x-pem-file" }, authority);
  };
}
