-- Begins attempts of what waits in the streams. What is read is taken out at once: from here on the attempt, its fence and its signs of life
-- say whose the task is, and nothing is ever with a worker that has not begun.
-- KEYS: 2 fence
-- ARGV: 1 worker, 2 number, 3 the most that are begun, 4 'again' where it was asked before without an answer or '';
--       then for each lane: lane, the most of it
-- Gives: '1' where more may wait or '', then for each attempt: task, 'fence attempt failed due' or only the fence where it is the first of a
--        task that is due as it was stored, the task's record
local worker, number, left = ARGV[1], ARGV[2], tonumber(ARGV[3])
local answer = { '' }
local function tell(task, s, record)
  local n = #answer
  local _, _, due = read_head(record)
  answer[n + 1], answer[n + 3] = task, record
  answer[n + 2] = concat({ s.fence, s.attempt, s.failed, s.due == '-' and due or s.due }, ' ')
end

-- Whether more waits in the lanes asked for. Who waits for it is woken.
local function look_for_more()
  for i = 5, #ARGV, 2 do
    if own('XLEN', prefix .. 'stream:' .. ARGV[i]) > 0 then
      ring(ARGV[i], 1)
      answer[1] = '1'
      return
    end
  end
end

local last, said = read_said('takes', worker)
if last and last > tonumber(number) then
  -- It comes late: its worker has gone on, and would not know of what this begins.
  look_for_more()
  return answer
end
if last == tonumber(number) then
  for task in string.gmatch(said, '\n([^\n]+)') do
    local s, record = read_state(call('HGET', attempts, task) or ''), call('HGET', tasks, task)
    if s and record and s.status == 'r' and s.number == number and s.holder == worker then
      tell(task, s, record)
    end
  end
  look_for_more()
  return answer
end

look_at_keys({ 'tasks' }, {})
-- The first write, which a server without memory refuses: and nothing is done.
local announced = false
local function announce()
  if not announced then
    announced = true
    call('HSET', prefix .. 'takes', worker, number .. ' ' .. now_text)
    if not last then
      forget_gone('takes')
    end
  end
end

local fence = math.max((tonumber(call('GET', KEYS[2])) or 0) + 1, micros)
if not (fence < 9007199254740992 - 100000) then
  -- From here on numbers are no longer told apart.
  error({ err = 'ERR the counter of terms and fences is corrupt: delete ' .. KEYS[2] })
end
-- Where all that is known of attempts is of running ones, nothing is known of what waits.
local any_known = call('HLEN', attempts) > call('ZCARD', running)
local written, heard, names, seen = {}, {}, {}, {}
-- Payloads of one answer: more would not be through before its worker stops waiting. The first goes whatever it carries.
local bytes, room = 0, 1048576
local begun, ends = 0, ' 0 0 - ' .. now_text .. ' ' .. number .. ' ' .. worker .. '\n'

-- Begins what was read of a lane; how many these are, and which was the first for which there was no room any more. What was cancelled is
-- gone; what is here twice, or runs, is begun once.
local function begin(found)
  local records = call('HMGET', tasks, unpack(found))
  local states = any_known and call('HMGET', attempts, unpack(found)) or {}
  local before = begun
  for i = 1, #found do
    local task, record = found[i], records[i]
    local head = record and head_of(record)
    if record and not head then
      forget(task)
    end
    local s = head and states[i] and (read_state(states[i]) or new_state(record))
    if head and not seen[task] and not (s and s.status ~= 'w') then
      bytes = bytes + #record - #head
      if bytes > room and begun > 0 then
        return begun - before, i
      end
      seen[task] = true
      local fence_text = text_of(fence)
      fence = fence + 1
      begun = begun + 1
      names[begun] = task
      heard[2 * begun - 1], heard[2 * begun] = now_text, task
      written[2 * begun - 1] = task
      if s then
        s.status, s.attempt, s.fence, s.began, s.number, s.holder = 'r', text_of(s.attempt + 1), fence_text, now_text, number, worker
        written[2 * begun] = write_state(s)
        tell(task, s, record)
      else
        -- The same, in as few words as will do: it is what most tasks are.
        written[2 * begun] = 'r 1 ' .. fence_text .. ends .. head
        local n = #answer
        answer[n + 1], answer[n + 2], answer[n + 3] = task, fence_text, record
      end
    end
  end
  return begun - before
end

local full = false
for i = 5, #ARGV, 2 do
  local lane, wanted = ARGV[i], math.min(left, tonumber(ARGV[i + 1]))
  local stream = prefix .. 'stream:' .. lane
  while wanted > 0 and not full do
    -- Whatever is read is taken out in the same step, so that a group of consumers would have nothing to remember.
    local some = own('XRANGE', stream, '-', '+', 'COUNT', text_of(wanted))
    if #some == 0 then
      break
    end
    announce()
    local found, places = {}, {}
    for j = 1, #some do
      local entry = some[j][2]
      -- One of somebody else goes unread.
      if entry[1] == 'k' then
        found[#found + 1], places[#found + 1] = entry[2], j
      end
    end
    local count_of, used = 0, #some
    if #found > 0 then
      local over
      count_of, over = begin(found)
      if over then
        full, used = true, places[over] - 1
      end
    end
    if used > 0 then
      local first, second = match(some[used][1], '^(%d+)-(%d+)$')
      call('XTRIM', stream, 'MINID', first .. '-' .. text_of(second + 1))
    end
    left = left - count_of
    if #some < wanted then
      break
    end
    wanted = wanted - count_of
  end
end
if ARGV[4] == 'again' then
  -- The earlier copy may come yet: nobody would know of what it begins.
  announce()
end
look_for_more()
if begun > 0 then
  call('SET', KEYS[2], text_of(fence - 1))
  call('HSET', attempts, unpack(written))
  call('ZADD', running, unpack(heard))
  call('HSET', prefix .. 'takes', worker, number .. ' ' .. now_text .. '\n' .. concat(names, '\n'))
  count('started', begun)
end
return answer
