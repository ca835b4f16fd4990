import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { refuse } from "../errors.ts";
import type { HttpHandler } from "./server-options.ts";

type Request = Parameters<HttpHandler>[0];
type Response = Parameters<HttpHandler>[1];

const RPC_CONTENT_TYPE = /^application\/(proto|json|connect\+(proto|json))(;|$)/;
const GRPC_CONTENT_TYPE = /^application\/grpc/;
const METHOD_PATH = /^\/[\w.]+\/\w+$/;

/** Answer a request for a path that no method has: in the caller's protocol where it speaks one, else by the fallback, else 404. */
export function answerUnknownPath(
  request: Request,
  response: Response,
  path: string,
  fallback: HttpHandler | undefined,
): void {
  const contentType = request.headers["content-type"] ?? "";
  const isPost = request.method === "POST";
  if (isPost && GRPC_CONTENT_TYPE.test(contentType)) {
    answerGrpc(request, response, path, contentType);
  } else if (isPost && RPC_CONTENT_TYPE.test(contentType) && METHOD_PATH.test(path)) {
    answerConnect(request, response, path);
  } else if (fallback !== undefined) {
    fallback(request, response);
  } else {
    send(request, response, 404, { "content-type": "text/plain" }, "not found\n");
  }
}

/** For gRPC and gRPC-Web alike, an error without messages may be all in the headers. */
function answerGrpc(request: Request, response: Response, path: string, contentType: string): void {
  const headers: Record<string, string> = { "content-type": contentType };
  for (const [name, value] of setTrailerStatus(new Headers(), unknownMethod(path)))
    headers[name] = value;
  send(request, response, 200, headers, "");
}

function answerConnect(request: Request, response: Response, path: string): void {
  const error = unknownMethod(path);
  const body = JSON.stringify(errorToJson(error, undefined));
  send(
    request,
    response,
    codeToHttpStatus(error.code),
    { "content-type": "application/json" },
    body,
  );
}

function unknownMethod(path: string) {
  return refuse("UNKNOWN_METHOD", `there is no method ${path} here`, { metadata: { path } });
}

function send(
  request: Request,
  response: Response,
  status: number,
  headers: Record<string, string>,
  body: string,
): void {
  // Whatever the caller still sends is not read, and must not fill its connection's window.
  request.resume();
  response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}
