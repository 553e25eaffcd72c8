using System;
using System.IO;
using System.Runtime.InteropServices;

namespace Whitewater.Tests
{
    /// <summary>Structs and constants are those of whitewater.h, as a C compiler lays them out.</summary>
    public sealed class LayoutTests
    {
        [Test]
        public void Every_struct_and_constant_is_what_C_says()
        {
            int count = 0, fields = 0;
            foreach (string line in File.ReadAllLines(Environment.GetEnvironmentVariable("WHITEWATER_LAYOUT")))
            {
                string[] words = line.Split(' ');
                Check.Equal(line, words[0] + " " + Here(words[0]));
                count++;
            }
            foreach (Type type in new[] { typeof(Native.Options), typeof(Native.Channel), typeof(Native.Stats), typeof(Native.Pass), typeof(Native.Order), typeof(Native.Event) })
            {
                fields += type.GetFields(System.Reflection.BindingFlags.Instance | System.Reflection.BindingFlags.NonPublic).Length;
            }
            Check.That(count > 70 && fields == 57, "all are compared: " + count + " of which fields " + fields);
        }

        private static int Here(string name)
        {
            string[] words = name.Split('.');
            switch (words[0])
            {
                case "UnreliableMax":
                    return Options.UnreliableMax;
                case "Repairs":
                    return words[1] == "Off" ? Repairs.Off.Percent : Repairs.Auto.Percent;
                case "Options":
                case "Channel":
                case "Stats":
                case "Pass":
                case "Order":
                case "Event":
                    Type type = typeof(Native).GetNestedType(words[0], System.Reflection.BindingFlags.NonPublic);
                    return words[1] == "size" ? Marshal.SizeOf(type) : (int)Marshal.OffsetOf(type, words[1]);
                case "EventKind":
                    return (int)Enum.Parse(typeof(Native.EventKind), words[1]);
                default:
                    return Convert.ToInt32(Enum.Parse(typeof(Suite).Assembly.GetType("Whitewater." + words[0]), words[1]));
            }
        }
    }
}
