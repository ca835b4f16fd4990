export { errorFromGrpc } from "./grpc/grpc-error.ts";
