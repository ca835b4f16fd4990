import { ServerCredentials } from "@grpc/grpc-js";
import { createBareServer } from "./bare-grpcjs-server.ts";

// Usage: node bare-grpcjs-main.js PORT
const [port] = process.argv.slice(2);
createBareServer().bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
