// The client's side against the real server: SERVER is the sampler-lint to start.
const assert = require("node:assert");
const { spawn } = require("node:child_process");
const { mkdtempSync, writeFileSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");
const { test } = require("node:test");
const rpc = require("vscode-jsonrpc/node");
const { serverCommand, explainRequest, EXPLAIN } = require("../out/client.js");

const TRAIN = `from torch.utils.data import DataLoader, DistributedSampler

def main(data, model):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(3):
        for batch in loader:
            model(batch).backward()
`;
const DEFAULTS = { path: process.env.SERVER, likely: null, minSeverity: null, select: [], ignore: [] };

async function session(told, play) {
  const folder = mkdtempSync(join(tmpdir(), "sampler-lint-"));
  writeFileSync(join(folder, "pyproject.toml"), "");
  writeFileSync(join(folder, "train.py"), TRAIN);
  const uri = pathToFileURL(join(folder, "train.py")).href;
  const { command, args } = serverCommand({ ...DEFAULTS, ...told });
  const server = spawn(command, args, { cwd: folder, stdio: ["pipe", "pipe", "ignore"] });
  const reader = new rpc.StreamMessageReader(server.stdout);
  const connection = rpc.createMessageConnection(reader, new rpc.StreamMessageWriter(server.stdin));
  const diagnostics = new Promise((found) => {
    connection.onNotification("textDocument/publishDiagnostics", (told) => found(told.diagnostics));
  });
  connection.listen();
  try {
    const capabilities = {};
    const rootUri = pathToFileURL(folder).href;
    const answer = await connection.sendRequest("initialize", { processId: null, rootUri, capabilities });
    await connection.sendNotification("initialized", {});
    const textDocument = { uri, languageId: "python", version: 1, text: TRAIN };
    await connection.sendNotification("textDocument/didOpen", { textDocument });
    await play({ connection, uri, capabilities: answer.capabilities, found: await diagnostics });
    await connection.sendRequest("shutdown");
    await connection.sendNotification("exit");
  } finally {
    connection.dispose();
    server.kill();
    rmSync(folder, { recursive: true });
  }
}

test("a finding has its quick fix, and its line is explained", () =>
  session({}, async ({ connection, uri, capabilities, found }) => {
    const finding = found.find((each) => each.code === "SMP102");
    assert.ok(finding, JSON.stringify(found));
    const context = { diagnostics: [finding], only: ["quickfix"] };
    const asked = { textDocument: { uri }, range: finding.range, context };
    const actions = await connection.sendRequest("textDocument/codeAction", asked);
    assert.match(JSON.stringify(actions), /set_epoch\(epoch\)/);
    assert.ok(capabilities.executeCommandProvider.commands.includes(EXPLAIN));
    const request = explainRequest(uri, finding.range.start.line);
    const lines = await connection.sendRequest("workspace/executeCommand", request);
    assert.match(lines.join("\n"), /SMP102 reported/);
  }));

for (const told of [{ ignore: ["SMP1"] }, { select: ["SMP5"], likely: true, minSeverity: "error" }]) {
  test(`settings reach the server: ${JSON.stringify(told)}`, () =>
    session(told, async ({ found }) => assert.deepEqual(found, [])));
}
