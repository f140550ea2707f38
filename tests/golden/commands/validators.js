// SPDX-License-Identifier: Apache-2.0
// Prints which YAML files below FOLDER/DIALECT/ a reader of FOLDER/DIALECT/schema.json finds right or wrong.
// node validators.js ajv FOLDER: ajv, by draft 7, as editors read schemas; writes each file as JSON beside it too.
// node validators.js server FOLDER COMMAND...: a language server for YAML, such as yaml-language-server --stdio.
'use strict'
const fs = require('fs')
const path = require('path')

const [reader, folder, ...command] = process.argv.slice(2)

const filesOf = dialect =>
  fs.readdirSync(path.join(folder, dialect)).filter(name => /\.ya?ml$/.test(name)).map(name => `${dialect}/${name}`)

const tell = (file, errors) => {
  console.log(`${errors.length > 0 ? 'wrong' : 'right'} ${file}`)
  for (const error of errors) console.error(`${file}: ${error}`)
}

function judgeWithAjv(dialect) {
  const Ajv = require('ajv')
  const yaml = require('js-yaml')
  const schema = JSON.parse(fs.readFileSync(path.join(folder, dialect, 'schema.json')))
  delete schema.$schema // Debian's ajv knows drafts up to 7
  const validate = new Ajv({ allErrors: true }).compile(schema)
  for (const file of filesOf(dialect)) {
    const at = path.join(folder, file)
    const document = yaml.load(fs.readFileSync(at, 'utf8'), { schema: yaml.CORE_SCHEMA })
    fs.writeFileSync(`${at}.json`, JSON.stringify(document))
    validate(document)
    tell(file, (validate.errors || []).map(error => `${error.dataPath} ${error.message}`))
  }
}

// Speaks to the server; `answer` has the result for each request of its own.
function connect(answer, notified) {
  const server = require('child_process').spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map()
  let read = Buffer.alloc(0)
  const send = message => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message })
    server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  }
  const take = message => {
    if (message.method && message.id !== undefined) send({ id: message.id, result: answer(message) })
    else if (message.method) notified(message)
    else waiting.get(message.id)(message.result)
  }
  server.stdout.on('data', bytes => {
    read = Buffer.concat([read, bytes])
    for (let head; (head = read.indexOf('\r\n\r\n')) >= 0;) {
      const length = Number(/Content-Length: (\d+)/i.exec(read.toString('utf8', 0, head))[1])
      if (read.length < head + 4 + length) return
      const message = JSON.parse(read.toString('utf8', head + 4, head + 4 + length))
      read = read.subarray(head + 4 + length)
      take(message)
    }
  })
  const request = (method, params) => new Promise(done => {
    waiting.set(waiting.size + 1, done)
    send({ id: waiting.size, method, params })
  })
  return { request, notify: (method, params) => send({ method, params }), end: () => server.kill() }
}

async function judgeWithServer(dialects) {
  const uriOf = file => `file://${path.join(folder, file)}`
  const schemas = Object.fromEntries(dialects.map(dialect => [uriOf(`${dialect}/schema.json`), [`**/${dialect}/*`]]))
  const settings = { validate: true, schemaStore: { enable: false }, schemas }
  const judged = new Map()
  const server = connect(
    message => message.params.items?.map(item => (item.section === 'yaml' ? settings : null)) ?? null,
    message => message.method === 'textDocument/publishDiagnostics' && judged.get(message.params.uri)(message.params))
  const capabilities = { workspace: { configuration: true } }
  await server.request('initialize', { processId: process.pid, rootUri: `file://${folder}`, capabilities })
  server.notify('initialized', {})
  server.notify('workspace/didChangeConfiguration', { settings: { yaml: settings } })
  for (const file of dialects.flatMap(filesOf)) {
    const uri = uriOf(file)
    const text = fs.readFileSync(path.join(folder, file), 'utf8')
    const published = new Promise(done => judged.set(uri, done))
    server.notify('textDocument/didOpen', { textDocument: { uri, languageId: 'yaml', version: 1, text } })
    tell(file, (await published).diagnostics.map(found => found.message))
  }
  server.end()
}

const dialects = fs.readdirSync(folder).filter(name => fs.statSync(path.join(folder, name)).isDirectory())
if (reader === 'ajv') dialects.forEach(judgeWithAjv)
else judgeWithServer(dialects)
