import { refuse } from "@rollcall/errors";
import type { HttpHandler, HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import { answerConnectError, answerGrpcError, isGrpc, isGrpcWeb, sendWhole } from "./answer-error.ts";

const RPC_CONTENT_TYPE = /^application\/(proto|json|connect\+(proto|json))(;|$)/;
const METHOD_PATH = /^\/[\w.]+\/\w+$/;

/**
 * Answer a request for an unknown path. An RPC call gets an error in its protocol: with HTTP 404, or with HTTP 200 over
 * gRPC, where the status is only in the trailers. Any other request goes to the fallback, or gets a 404 without one.
 * Returns whether the request was an RPC call.
 */
export function answerUnknownPath(
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  fallback: HttpHandler | undefined,
): boolean {
  const contentType = request.headers["content-type"] ?? "";
  const isPost = request.method === "POST";
  if (isPost && isGrpc(request)) {
    answerGrpcError(request, response, unknownMethod(path), isGrpcWeb(request) ? 404 : 200);
    return true;
  }
  if (isPost && RPC_CONTENT_TYPE.test(contentType) && METHOD_PATH.test(path)) {
    answerConnectError(request, response, unknownMethod(path), 404);
    return true;
  }
  (fallback ?? notFound)(request, response);
  return false;
}

/** Answer a request that is neither for a method nor for a page. */
export function notFound(request: HttpRequest, response: HttpResponse): void {
  sendWhole(request, response, 404, { "content-type": "text/plain" }, "not found\n");
}

/** The error for a call of a method that is not served here. */
export function unknownMethod(path: string) {
  return refuse("UNKNOWN_METHOD", `this server has no method ${path}`, { metadata: { path } });
}
