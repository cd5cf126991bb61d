import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient } from "vscode-languageclient/node";
import { explainRequest, serverCommand, type Settings } from "./client";

const NAME = "sampler-lint";
let client: LanguageClient | undefined;
let output: vscode.OutputChannel;

function settings(): Settings {
  const told = vscode.workspace.getConfiguration(NAME);
  return {
    path: told.get("path", NAME),
    likely: told.get<boolean | null>("likely", null),
    minSeverity: told.get<string | null>("minSeverity", null),
    select: told.get<string[]>("select", []),
    ignore: told.get<string[]>("ignore", []),
  };
}

async function start(): Promise<void> {
  const server = serverCommand(settings());
  client = new LanguageClient(NAME, NAME, server, {
    documentSelector: [{ language: "python" }],
    outputChannel: output,
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const help = "pip install 'sampler-lint[server]', or set sampler-lint.path";
    void vscode.window.showErrorMessage(`sampler-lint did not start: ${String(error)} (${help})`);
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

async function explainLine(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!client || !editor) return;
  const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
  const request = explainRequest(uri, editor.selection.active.line);
  const lines: string[] = await client.sendRequest(ExecuteCommandRequest.type, request);
  output.appendLine(lines.join("\n"));
  output.show(true);
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  output = vscode.window.createOutputChannel(NAME);
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand("sampler-lint.explainLine", explainLine),
    vscode.commands.registerCommand("sampler-lint.restart", restart),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration(NAME)) await restart();
    }),
  );
  await start();
}

export function deactivate(): Promise<void> {
  return stop();
}
