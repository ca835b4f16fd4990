import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { CODE_OF_REASON } from "@rollcall/errors";
import { codeName, type MethodPolicy, methodName, type PolicyTable } from "../calls/policy.ts";
import type { JsonSchema } from "./field-rules.ts";
import { type Comments, MessageSchemas } from "./message-schema.ts";

/** One media type of a request or a response. */
interface Content {
  readonly [mediaType: string]: { readonly schema: JsonSchema };
}

/** One method of the API. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly requestBody: { readonly required: true; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
  /** Which side sends a stream of frames; absent if the method has no stream. See the description. */
  readonly "x-rollcall-stream"?: "server" | "client" | "both";
}

/** An OpenAPI 3.1 description of services, as Connect serves them to callers that use JSON. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: {
    readonly securitySchemes: object;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
}

const INTRODUCTION = `Call every method with a POST of a JSON object, which may be empty; the response is a JSON object
too. Fields with their default value are omitted from responses. Field names are accepted in lowerCamelCase and in
snake_case; an unknown field is an error. The header Connect-Timeout-Ms sets the caller's timeout in milliseconds.
The same methods are served over gRPC and gRPC-Web on the same port.`;

const STREAMED = `Request and response are Connect streams: \`application/connect+json\`, with each message in a frame
that starts with one byte of flags and four bytes of length. The last frame of a response has flag 2, and the error
if there is one.`;

const STREAMS = {
  unary: undefined,
  server_streaming: "server",
  client_streaming: "client",
  bidi_streaming: "both",
} as const;

const SECURITY = {
  bearer: { type: "http", scheme: "bearer", description: "An access token, or a token of the cluster's OIDC issuer." },
} as const;

const ERROR: JsonSchema = {
  type: "object",
  description: "Why a call failed. The ErrorInfo in the details has the reason, a stable name for programs.",
  required: ["code"],
  additionalProperties: false,
  properties: {
    code: { type: "string", enum: [...new Set(Object.values(CODE_OF_REASON).map(codeName)), "unknown", "data_loss"] },
    message: { type: "string", description: "What is wrong and what to do next, for people." },
    details: {
      type: "array",
      items: {
        type: "object",
        required: ["type", "value"],
        properties: {
          type: { type: "string", description: "Full name of a message, for example google.rpc.ErrorInfo." },
          value: { type: "string", contentEncoding: "base64", description: "The message in binary, without padding." },
          debug: { description: "The message as JSON." },
        },
      },
    },
  },
};

const REASONS: JsonSchema = {
  type: "string",
  description: "The possible reasons in ErrorInfo.",
  enum: Object.keys(CODE_OF_REASON),
};

/** Describe services. Methods that only other processes of the cluster can call are left out. */
export function openApiDocument(
  services: readonly DescService[],
  policies: PolicyTable,
  comments: Comments,
): OpenApiDocument {
  const schemas = new MessageSchemas(comments);
  const methods = services
    .flatMap((service) => service.methods)
    .filter((method) => policies[methodName(method)]?.caller !== "replica");
  const described = new Set(methods.map(({ parent }) => parent));
  return {
    openapi: "3.1.0",
    info: { title: "Rollcall", version: "v1", description: oneLine(INTRODUCTION) },
    servers: [{ url: "/", description: "The address that served this document." }],
    tags: [...described].map(({ typeName }) => ({ name: typeName, description: comments[typeName] ?? "" })),
    paths: Object.fromEntries(
      methods.map((method) => [
        `/${methodName(method)}`,
        { post: operation(method, policies[methodName(method)], schemas, comments) },
      ]),
    ),
    components: {
      securitySchemes: SECURITY,
      schemas: { ...schemas.components(), "connect.Error": ERROR, "rollcall.ErrorReason": REASONS },
    },
  };
}

function operation(
  method: DescMethod,
  policy: MethodPolicy | undefined,
  schemas: MessageSchemas,
  comments: Comments,
): Operation {
  const stream = STREAMS[method.methodKind];
  const comment = comments[`${method.parent.typeName}.${method.name}`] ?? "";
  const mediaType = stream === undefined ? "application/json" : "application/connect+json";
  const texts = [comment, callerOf(policy), stream === undefined ? "" : oneLine(STREAMED)];
  return {
    operationId: `${method.parent.name}_${method.name}`,
    tags: [method.parent.typeName],
    summary: method.name,
    description: texts.filter((text) => text !== "").join("\n\n"),
    security: needsToken(policy) ? [{ bearer: [] }] : [],
    requestBody: { required: true, content: { [mediaType]: { schema: schemas.message(method.input) } } },
    responses: {
      200: { description: "The response.", content: { [mediaType]: { schema: schemas.message(method.output) } } },
      415: { description: "The request's media type is not supported." },
      default: {
        description: "The call failed.",
        content: { "application/json": { schema: { $ref: "#/components/schemas/connect.Error" } } },
      },
    },
    ...(stream === undefined ? {} : { "x-rollcall-stream": stream }),
  };
}

function needsToken(policy: MethodPolicy | undefined): boolean {
  return policy !== undefined && policy.caller !== "anyone" && policy.caller !== "node";
}

function callerOf(policy: MethodPolicy | undefined): string {
  if (policy === undefined) return "";
  const { caller, idempotent } = policy;
  const again = idempotent ? " Repeating the call has no further effect." : "";
  if (caller === "anyone") return `Requires no token.${again}`;
  if (caller === "node") return `For nodes: the request proves the node's key.${again}`;
  return `Requires the role ${caller}.${again}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
