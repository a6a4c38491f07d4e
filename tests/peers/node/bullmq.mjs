// Tasks that wait in a queue of BullMQ, until all have been executed: `node bullmq.mjs PORT TASKS`.
import { Queue, Worker } from "bullmq";

const [port, tasks] = process.argv.slice(2).map(Number);
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const queue = new Queue("bench", { connection });
const payload = "x".repeat(100);
for (let stored = 0; stored < tasks; stored += 1000) {
  const count = Math.min(1000, tasks - stored);
  // What is done is taken out at once, which is the least work.
  const job = { name: "nothing", data: payload, opts: { removeOnComplete: true } };
  await queue.addBulk(Array.from({ length: count }, () => job));
}
let executed = 0;
await new Promise((resolve, reject) => {
  const begun = performance.now();
  const body = async () => {
    executed += 1;
    if (executed === tasks) {
      console.log(`seconds ${(performance.now() - begun) / 1000}`);
      resolve();
    }
  };
  // Of 50, 100, 200 and 500 under way at once 200 is the fastest.
  const worker = new Worker("bench", body, { connection, concurrency: Number(process.env.CONCURRENCY ?? 200) });
  worker.on("error", reject);
});
process.exit(0);
